// The module in OPA's own host for JavaScript. `dist/opa.wasm` is built before.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import opa from "@open-policy-agent/opa-wasm";

const module = await WebAssembly.compile(readFileSync(new URL("../../../dist/opa.wasm", import.meta.url)));
const MAX_SIZE = 600 * 1024;
const MAX_MEMORY = 64 * 1024 * 1024;

// In one call, as hosts do since ABI 1.2, and step by step, as Kubewarden does.
const WAYS = { "in one call": 2, "step by step": 1 };

async function load(way, data) {
  const policy = await opa.loadPolicy(module);
  assert.equal(policy.minorVersion, 2);
  policy.minorVersion = WAYS[way];
  if (data !== undefined) policy.setData(data);
  return policy;
}

function ask(policy, entrypoint, input) {
  const results = policy.evaluate(input, `statefulset_scheduling/${entrypoint}`);
  assert.equal(results.length, 1);
  return results[0].result;
}

const raw = (text) => new TextEncoder().encode(text).buffer;

const statefulSet = (scheduling) => ({
  apiVersion: "apps/v1",
  kind: "StatefulSet",
  metadata: { name: "web", namespace: "ns", uid: "s-1" },
  spec: { replicas: 3, podManagementPolicy: "Parallel", scheduling, template: { spec: {} } },
});

const create = (object) => ({
  request: {
    uid: "u-1",
    kind: { group: "apps", version: "v1", kind: "StatefulSet" },
    operation: "CREATE",
    namespace: "ns",
    object,
  },
});

const pod = {
  request: {
    uid: "u-2",
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
  },
};

test("the module takes nothing from its host but the memory", () => {
  assert.deepEqual(WebAssembly.Module.imports(module), [{ module: "env", name: "memory", kind: "memory" }]);
});

test("the module exports the ABI and nothing else", () => {
  const exports = WebAssembly.Module.exports(module).map(({ name, kind }) => `${kind} ${name}`);
  assert.deepEqual(exports.sort(), [
    "function builtins",
    "function entrypoints",
    "function eval",
    "function opa_eval",
    "function opa_eval_ctx_get_result",
    "function opa_eval_ctx_new",
    "function opa_eval_ctx_set_data",
    "function opa_eval_ctx_set_entrypoint",
    "function opa_eval_ctx_set_input",
    "function opa_free",
    "function opa_heap_ptr_get",
    "function opa_heap_ptr_set",
    "function opa_json_dump",
    "function opa_json_parse",
    "function opa_malloc",
    "function opa_value_add_path",
    "function opa_value_dump",
    "function opa_value_parse",
    "function opa_value_remove_path",
    "global opa_wasm_abi_minor_version",
    "global opa_wasm_abi_version",
  ]);
});

test("the module is not larger than its bound", () => {
  const { length } = readFileSync(new URL("../../../dist/opa.wasm", import.meta.url));
  assert.ok(length <= MAX_SIZE, `${length} bytes`);
});

for (const way of Object.keys(WAYS)) {
  test(`the entrypoints are told (${way})`, async () => {
    const { entrypoints } = await load(way);
    assert.deepEqual(entrypoints, {
      "statefulset_scheduling/review": 0,
      "statefulset_scheduling/validate": 1,
      "statefulset_scheduling/compile": 2,
      "statefulset_scheduling/query": 3,
    });
  });

  test(`a review is answered as a webhook answers (${way})`, async () => {
    const policy = await load(way, {});
    const { apiVersion, kind, response } = ask(policy, "review", create(statefulSet({ schedulingPolicy: { gang: {} } })));
    assert.deepEqual([apiVersion, kind], ["admission.k8s.io/v1", "AdmissionReview"]);
    const { patch, ...rest } = response;
    assert.deepEqual(rest, { uid: "u-1", allowed: true, patchType: "JSONPatch" });
    assert.equal(JSON.parse(Buffer.from(patch, "base64").toString())[0].op, "add");
    const denied = ask(policy, "review", create(statefulSet({ schedulingPolicy: {} }))).response;
    assert.deepEqual([denied.uid, denied.allowed, denied.status.code], ["u-1", false, 422]);
    assert.match(denied.status.message, /spec\.scheduling\.schedulingPolicy/);
    // The first entrypoint is what a host evaluates that names none.
    assert.equal(policy.evaluate(create(statefulSet(null)))[0].result.response.allowed, true);
  });

  test(`a pod finds its StatefulSet in the data (${way})`, async () => {
    const set = statefulSet({ schedulingPolicy: { gang: {} } });
    set.metadata.annotations = { "statefulset-scheduling.dev/pod-group": '{"name":"web-g","uid":"g-1","replicas":3}' };
    const policy = await load(way, { carriers: ["field"], kubernetes: { statefulsets: { ns: { web: set } } } });
    const stamped = ask(policy, "review", pod).response;
    assert.deepEqual(JSON.parse(Buffer.from(stamped.patch, "base64").toString()), [
      { op: "add", path: "/spec/schedulingGroup", value: { podGroupName: "web-g" } },
    ]);
    policy.setData({ kubernetes: { statefulsets: {} } });
    assert.match(ask(policy, "review", pod).response.status.message, /held: .*not found/);
    policy.setData({});
    assert.match(ask(policy, "review", pod).response.status.message, /held: .*data has no kubernetes/);
  });

  test(`the core's queries are answered (${way})`, async () => {
    const policy = await load(way);
    const { declarative } = ask(policy, "validate", { scheduling: { schedulingPolicy: {} } });
    assert.equal(declarative[0].origin, "union");
    const compiled = ask(policy, "compile", { statefulSet: statefulSet({ schedulingPolicy: { gang: {} } }) });
    assert.equal(compiled.podGroup.spec.schedulingPolicy.gang.minCount, 3);
    assert.equal(ask(policy, "compile", { statefulSet: statefulSet(undefined) }), null);
    assert.match(ask(policy, "query", { workloadName: { ownerName: "web", ownerUID: "s" } }), /^web-/);
    assert.match(ask(policy, "query", { nothing: 1 }).error, /must have one of/);
  });

  test(`whatever comes in, the instance answers, and answers on (${way})`, async () => {
    const policy = await load(way, {});
    const deep = "[".repeat(200_000) + "]".repeat(200_000);
    const annotated = (text) =>
      JSON.stringify(create({ metadata: { annotations: { "statefulset-scheduling.dev/scheduling": text } }, spec: { template: {} } }));
    const object = (text) => JSON.stringify(create(0)).replace('"object":0', `"object":${text}`);
    const inputs = [
      "null", "3", '"x"', "[]", "{}", '{"request":null}', '{"request":[]}', '{"request":{}}', '{"request":{"uid":3}}',
      deep, object(deep), object(`{"spec":{"scheduling":${deep}}}`), object(`{"metadata":{},"spec":{"x":${deep}}}`),
      object(`{"metadata":{"annotations":{"statefulset-scheduling.dev/scheduling":"{}"}},"spec":{"template":{},"x":${deep}}}`),
      // As deep as JSON is read, and deeper.
      ...[120, 125, 127, 128].map((depth) => '{"a":'.repeat(depth) + 1 + "}".repeat(depth)).flatMap((json) => [
        json, `{"scheduling":${json}}`, `{"statefulSet":{"spec":{"scheduling":${json}}}}`, `{"statefulSet":{},"settings":${json}}`,
        object(`{"spec":{"scheduling":${json}}}`), object(`{"spec":{"scheduling":{},"template":${json}}}`),
        object(`{"metadata":{},"spec":{"scheduling":{},"template":{"spec":${json}},"x":${json}}}`), annotated(json),
      ]),
      annotated("[".repeat(2_000)), annotated("{a: ".repeat(2_000)), annotated("- ".repeat(4_000)),
      annotated("x".repeat(3 << 20)), annotated("a: &a [*a]"), annotated("\t\t"), annotated("k: 1\n".repeat(3_000)),
      annotated('{"schedulingPolicy": {"gang": {}}}'),
      object(`{"spec":{"scheduling":{"schedulingConstraints":{"topology":[${Array(20_000).fill("{}")}]}},"template":{}}}`),
      object(`{"spec":{"scheduling":{},"template":{},"x":"${"y".repeat(4 << 20)}"}}`),
      object('{"metadata":{"name":"\\ud800"},"spec":{"scheduling":{}}}'), object('{"metadata":{"name":"a\\u0000b"}}'),
      object(`{"metadata":{"name":"${"é".repeat(100_000)}"},"spec":{"scheduling":{},"template":{}}}`),
    ];
    for (let round = 0; round < 3; round++) {
      for (const input of inputs) {
        for (const entrypoint of ["review", "validate", "compile", "query"]) {
          const answer = ask(policy, entrypoint, raw(input));
          if (entrypoint === "review") assert.equal(typeof answer.response.allowed, "boolean", input.slice(0, 200));
        }
      }
    }
    assert.ok(policy.mem.buffer.byteLength <= MAX_MEMORY, `${policy.mem.buffer.byteLength} bytes`);
    assert.equal(ask(policy, "review", create(statefulSet({}))).response.allowed, true);
  });
}

test("an input that is no JSON is an answer in one call", async () => {
  const policy = await load("in one call", {});
  for (const input of ["{", "x", '{"request":{}', '{"request":{}}}', '{"request":{}}\0']) {
    const { response } = ask(policy, "review", raw(input));
    assert.deepEqual([response.allowed, response.status.code], [false, 400], input);
    assert.equal(typeof ask(policy, "validate", raw(input)).error, "string");
  }
  const { response } = ask(policy, "review", new Uint8Array([0x7b, 0xff, 0x7d]).buffer);
  assert.match(response.status.message, /not UTF-8/);
  assert.match(ask(policy, "review", undefined).response.status.message, /cannot be read/);
});

test("an input that is no JSON is no value step by step", async () => {
  const policy = await load("step by step", {});
  assert.throws(() => policy.evaluate(raw("{")), /failed to parse/);
  assert.equal(ask(policy, "review", create(statefulSet({}))).response.allowed, true);
});

test("an entrypoint that does not exist has no result", async () => {
  const policy = await load("in one call", {});
  assert.deepEqual(policy.evaluate({}, 9), []);
});

test("evaluations take no memory from each other", async () => {
  const policy = await load("in one call", {});
  const input = create({ ...statefulSet({}), status: { x: "y".repeat(100_000) } });
  ask(policy, "review", input);
  const { byteLength } = policy.mem.buffer;
  for (let i = 0; i < 2_000; i++) ask(policy, "review", input);
  assert.equal(policy.mem.buffer.byteLength, byteLength);
});

test("values are changed in place, as hosts do that patch their data", async () => {
  const policy = await load("in one call", {});
  const { exports } = policy.wasmInstance;
  const put = (value) => {
    const bytes = new TextEncoder().encode(`${JSON.stringify(value)}\0`);
    const address = exports.opa_malloc(bytes.length);
    new Uint8Array(policy.mem.buffer).set(bytes, address);
    const parsed = exports.opa_value_parse(address, bytes.length);
    exports.opa_free(address);
    return parsed;
  };
  const get = (address) => {
    const start = exports.opa_value_dump(address);
    const bytes = new Uint8Array(policy.mem.buffer, start);
    return JSON.parse(new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0))));
  };
  const base = put({ a: { b: 1 } });
  assert.equal(exports.opa_value_add_path(base, put(["a", "c", "d"]), put([2])), 0);
  assert.deepEqual(get(base), { a: { b: 1, c: { d: [2] } } });
  assert.equal(exports.opa_value_remove_path(base, put(["a", "b"])), 0);
  assert.deepEqual(get(base), { a: { c: { d: [2] } } });
  assert.equal(exports.opa_value_add_path(base, put({}), put(1)), 2);
  assert.equal(exports.opa_value_remove_path(base, put(["x", "y"])), 3);
  assert.equal(exports.opa_value_add_path(0, put(["x"]), put(1)), 1);
});
