// The package, as Node and as a browser load it. `dist/npm` is built before.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import * as node from "../../../dist/npm/node.js";
import { measure } from "../size.mjs";

const { compile, query, review, validate } = node;

const statefulSet = (scheduling, more = {}) => ({
  apiVersion: "apps/v1",
  kind: "StatefulSet",
  metadata: { name: "web", namespace: "ns", uid: "s-1", ...more },
  spec: { replicas: 3, podManagementPolicy: "Parallel", scheduling, template: { spec: {} } },
});

const create = (object) => ({
  kind: { group: "apps", version: "v1", kind: "StatefulSet" },
  operation: "CREATE",
  namespace: "ns",
  object,
});

const pod = {
  kind: { group: "", version: "v1", kind: "Pod" },
  operation: "CREATE",
  namespace: "ns",
  object: {
    metadata: {
      name: "web-0",
      labels: { "statefulset-scheduling.dev/managed": "true" },
      ownerReferences: [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid: "s-1", controller: true }],
    },
    spec: { containers: [] },
  },
};

test("an intent is judged layer by layer", () => {
  assert.deepEqual(validate({ scheduling: { schedulingPolicy: { gang: {} } } }), {
    statefulset: [], builder: [], declarative: [], warnings: [],
  });
  const { declarative } = validate({ scheduling: { schedulingPolicy: {} } });
  assert.deepEqual(declarative.map(({ type, field, origin }) => [type, field, origin]), [
    ["FieldValueInvalid", "spec.scheduling.schedulingPolicy", "union"],
  ]);
  const change = { scheduling: { schedulingPolicy: { basic: {} } }, oldScheduling: { schedulingPolicy: { gang: {} } } };
  assert.notDeepEqual(validate({ ...change, operation: "UPDATE" }).declarative, []);
});

test("a StatefulSet is compiled to its two objects", () => {
  const { workload, podGroup } = compile({ statefulSet: statefulSet({ schedulingPolicy: { gang: {} } }) });
  assert.deepEqual([workload.kind, podGroup.kind], ["Workload", "PodGroup"]);
  assert.equal(podGroup.spec.workloadRef.workloadName, workload.metadata.name);
  assert.equal(podGroup.spec.schedulingPolicy.gang.minCount, 3);
  assert.equal(compile({ statefulSet: statefulSet(undefined) }), null);
  assert.equal(compile({ statefulSet: statefulSet({ disruptionMode: { all: {} } }) }).errors.length, 1);
});

test("an admission request is reviewed", () => {
  const verdict = review({ request: create(statefulSet({ schedulingPolicy: { gang: {} } })) });
  assert.equal(verdict.allowed, true);
  assert.equal(verdict.patch[0].op, "add");
  const denied = review({ request: create(statefulSet({ schedulingPolicy: {} })) });
  assert.deepEqual([denied.allowed, denied.code, denied.errors.length], [false, 422, 1]);
  const settings = { featureGates: "WorkloadWithStatefulSet=false" };
  assert.equal(review({ request: create(statefulSet({ schedulingPolicy: {} })), settings }).allowed, true);
});

test("a pod finds its StatefulSet by a function", () => {
  const binding = { "statefulset-scheduling.dev/pod-group": '{"name":"web-g","uid":"g-1","replicas":3}' };
  const asked = [];
  const find = (...names) => {
    asked.push(names);
    return statefulSet({ schedulingPolicy: { gang: {} } }, { annotations: binding });
  };
  assert.deepEqual(review({ request: pod }, find).patch, [
    { op: "add", path: "/spec/schedulingGroup", value: { podGroupName: "web-g" } },
  ]);
  assert.deepEqual(asked, [["ns", "web"]]);
  assert.match(review({ request: pod }).message, /held: .*there is no cluster to ask/);
  assert.match(review({ request: pod }, () => undefined).message, /held: .*not found/);
  assert.match(review({ request: pod }, () => null).message, /held: .*not found/);
  const broken = () => {
    throw new Error("out of order");
  };
  assert.match(review({ request: pod }, broken).message, /held: .*out of order/);
  const worse = () => {
    throw { toString: 1 };
  };
  assert.match(review({ request: pod }, worse).message, /held: .*has thrown something/);
});

test("names are made as in the cluster", () => {
  const workloadName = query({ workloadName: { ownerName: "web", ownerUID: "s-1" } });
  assert.match(workloadName, /^web-[0-9a-z]+$/);
  assert.match(query({ podGroupName: { workloadName, templateName: "web" } }), new RegExp(`^${workloadName}-web-`));
  assert.deepEqual(query({ validate: { scheduling: {} } }), validate({ scheduling: {} }));
});

test("what cannot be read is thrown, and the next question is answered", () => {
  const circular = {};
  circular.self = circular;
  const deep = JSON.parse("[".repeat(500) + "]".repeat(500));
  for (const question of [undefined, null, 3, "x", [], {}, () => 1, Symbol("x"), 1n, circular, { x: 1 }]) {
    assert.throws(() => query(question), Error);
    assert.throws(() => review(question), Error);
    assert.throws(() => compile(question), Error);
  }
  assert.throws(() => validate({ scheduling: { schedulingPolicy: 3 } }), /must be an object/);
  assert.throws(() => validate({ scheduling: deep }), /recursion limit/);
  assert.throws(() => review({ request: { kind: 3, operation: "CREATE" } }), /cannot be read/);
  assert.equal(review({ request: create(statefulSet({})) }).allowed, true);
});

test("a text survives as it is", () => {
  const key = 'é\u{1f600}"\\\u0000';
  const { declarative } = validate({ scheduling: { schedulingConstraints: { topology: [{ key }] } } });
  assert.equal(declarative[0].badValue, key);
  // Half of a character is an answer, too.
  assert.equal(review({ request: create(statefulSet({}, { name: "\ud800" })) }).allowed, false);
});

test("a browser loads the module from an address, a response or bytes", () => {
  const folder = new URL("../../../dist/npm/", import.meta.url);
  const sources = [
    "bytes",
    'new Response(bytes, { headers: { "content-type": "application/wasm" } })',
    '"data:application/wasm;base64," + bytes.toString("base64")',
  ];
  for (const source of sources) {
    // In a process of its own, where no entry has loaded the module before.
    const program = `
      import { readFileSync } from "node:fs";
      import init, { query } from "${new URL("index.js", folder)}";
      const bytes = readFileSync(new URL("${new URL("core_bg.wasm", folder)}"));
      await init(${source});
      console.log(query({ workloadName: { ownerName: "web", ownerUID: "s-1" } }));`;
    const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
    assert.equal(stderr, "", source);
    assert.match(stdout, /^web-/, source);
  }
});

test("both entries have the same exports", async () => {
  const browser = await import("../../../dist/npm/index.js");
  assert.deepEqual(Object.keys(browser), Object.keys(node));
  assert.deepEqual(Object.keys(node), ["compile", "default", "init", "query", "review", "validate"]);
});

test("the module is not larger than its bounds", () => {
  const { ok, text } = measure();
  assert.ok(ok, text);
});
