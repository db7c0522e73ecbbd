// The judgement of a text, with the core as Node loads it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import * as core from "../../dist/npm/node.js";
import { groups } from "../examples.mjs";
import { judge } from "../src/judge.js";
import { announcement, explain, findings, headline } from "../src/verdict.js";
import { GANG, names, read, refusals, refusedOnCreate } from "./fixtures.mjs";

const KEP = [...names("kep/field"), ...names("kep/annotation")];

test("every manifest of the KEP is allowed and compiled", () => {
  for (const name of KEP) {
    const { problems, sets } = judge(core, read(name));
    assert.deepEqual(problems, [], name);
    assert.equal(sets.length, 1, name);
    assert.deepEqual([sets[0].allowed, sets[0].errors, sets[0].warnings], [true, [], []], name);
    assert.equal(sets[0].compiled.podGroup.kind, "PodGroup", name);
  }
});

test("every manifest of the KEP is an example, in both forms", () => {
  const listed = groups.flatMap(({ folder, names }) => names.map((name) => `${folder}/${name}`));
  for (const name of KEP) assert.ok(listed.includes(name), name);
});

test("a refusal has the errors that are expected of the core, each at the line that its field ends with", () => {
  let checked = 0;
  for (const name of refusals) {
    const text = read(name);
    const judged = judge(core, text);
    if (!refusedOnCreate(judged)) continue;
    const { errors: expected, settings } = parse(read(`${name}.expected`));
    if (settings) continue;
    const { errors } = judged.sets[0];
    assert.deepEqual(
      errors.map(({ type, field, body }) => ({ type, field, body })),
      expected,
      name,
    );
    for (const { field, line, source, detail } of errors) {
      assert.equal(text.split("\n")[line - 1].trimEnd(), source, name);
      if (/^line \d/.test(detail)) continue;
      const last = /([^.[\]]+|\[[^\]]*[^\d\]][^\]]*\])(\[\d+\])?$/.exec(field);
      const key = last[1].replace(/^\[|\]$/g, "");
      // An item has no key: it is where its first member is.
      if (last[2]) assert.match(source, /^\s*- /, `${name}: ${field}`);
      else if (field.endsWith(".key") && !text.includes("- key:")) assert.match(source, /^\s*- /, `${name}: ${field}`);
      else assert.ok(source.trim().replace(/^- /, "").includes(key), `${name}: ${field} is at "${source}"`);
      checked++;
    }
  }
  assert.ok(checked > 20, String(checked));
});

test("an OrderedReady gang gets the KEP's message at the line of the gang, in both forms", () => {
  for (const name of ["kep/field/zookeeper", "kep/annotation/zookeeper"]) {
    const text = read(name).replace("Parallel", "OrderedReady");
    const [set] = judge(core, text).sets;
    assert.equal(set.allowed, false);
    assert.deepEqual(
      set.errors.map(({ body, source }) => [body, source.trim().slice(0, 8)]),
      [[GANG, "gang: {}"]],
    );
    assert.match(set.errors[0].field, /(^spec\.scheduling|dev\/scheduling\])\.schedulingPolicy\.gang$/);
    assert.equal(set.compiled, null);
  }
});

test("a message about a line of an annotation is at that line", () => {
  const [set] = judge(core, read("refusals/annotation-duplicate-key")).sets;
  assert.match(set.errors[0].detail, /^line 5: /);
  const lines = read("refusals/annotation-duplicate-key").split("\n");
  const header = lines.findIndex((line) => line.includes("statefulset-scheduling.dev/scheduling: |")) + 1;
  assert.deepEqual([set.errors[0].line, set.errors[0].source.trim()], [header + 5, "schedulingPolicy:"]);
});

test("a warning is at its line", () => {
  const text = read("kep/field/story-4-shard-server").replace(/ {6}resourceClaims:.*\n.*\n.*\n/, "");
  const judged = judge(core, text);
  const [warning] = judged.sets[0].warnings;
  assert.equal(warning.field, "spec.scheduling.resourceClaims[0]");
  assert.equal(warning.source.trim(), "- name: shared");
  assert.match(warning.body, /^no entry of spec\.template/);
  assert.deepEqual(headline(judged), { kind: "warning", text: "Allowed: 1 warning" });
});

test("each StatefulSet of a text is judged for itself, and other objects are left alone", () => {
  const text = `${read("kep/field/story-4-shard-server")}---\n${read("refusals/gang-needs-parallel")}`;
  const judged = judge(core, text);
  assert.deepEqual(
    judged.sets.map(({ name, allowed }) => [name, allowed]),
    [
      ["shard-server", true],
      ["zookeeper", false],
    ],
  );
  assert.equal(judged.others, 1);
  assert.match(judged.sets[1].errors[0].source, /gang: \{\}/);
  assert.deepEqual(headline(judged), { kind: "error", text: "1 of 2 denied: 1 error" });
  assert.equal(explain(judged), "2 StatefulSets. 1 other object left alone.");
});

test("the items of a List are judged", () => {
  const item = read("refusals/gang-needs-parallel").replace(/^/gm, "  ").replace("  apiVersion", "- apiVersion");
  const { sets } = judge(core, `apiVersion: v1\nkind: List\nitems:\n${item}`);
  assert.deepEqual(
    sets.map(({ errors }) => errors[0].source.trim()),
    ["gang: {}"],
  );
});

test("what is not YAML is a problem at its line, and nothing is judged", () => {
  const judged = judge(core, `${read("kep/field/minimal")}---\nspec: [1\n`);
  assert.deepEqual(judged.sets, []);
  assert.ok(judged.problems[0].line >= 22);
  assert.equal(headline(judged).text, "Not YAML");
  const twice = judge(core, "kind: StatefulSet\nspec: {}\nspec: {}\n");
  assert.deepEqual(
    twice.problems.map(({ line, body }) => [line, body]),
    [[3, "Map keys must be unique"]],
  );
  const bomb = "a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n";
  assert.equal(judge(core, bomb).problems.length, 1);
});

test("a StatefulSet without an intent is allowed, and nothing is compiled", () => {
  const judged = judge(core, read("real-world/zookeeper"));
  const set = judged.sets.find(({ allowed }) => allowed);
  assert.equal(set.compiled, null);
  assert.match(explain({ ...judged, sets: [set] }), /asks for no group/);
});

test("whatever is typed gets an answer", () => {
  const texts = [
    "",
    "#",
    "---",
    "a",
    "1",
    "[]",
    "null",
    "- a",
    "? a\n: b",
    "kind: StatefulSet",
    "kind: List\nitems: [1, null]",
  ];
  texts.push(
    "kind: StatefulSet\nmetadata: 1\nspec: 1",
    "kind: StatefulSet\nspec:\n  scheduling: *x",
    "kind: [StatefulSet]",
  );
  texts.push(
    "kind: StatefulSet\napiVersion: 3\nspec: {scheduling: [1]}",
    "kind: StatefulSet\nmetadata: {annotations: 1}",
  );
  const whole = read("refusals/everything-at-once");
  for (let end = 0; end < whole.length; end += 7) texts.push(whole.slice(0, end));
  const embedded = read("kep/annotation/my-db");
  for (let end = 0; end < embedded.length; end += 7) texts.push(embedded.slice(0, end));
  for (const text of texts) {
    const judged = judge(core, text);
    assert.ok(headline(judged).text && explain(judged) && announcement(judged), text);
    for (const { start, end, line } of findings(judged)) {
      assert.ok(0 <= start && start <= end && end <= text.length, text);
      assert.ok(1 <= line && line <= text.split("\n").length, text);
    }
  }
});

test("a screen reader is told the verdict and the first line to go to", () => {
  const judged = judge(core, read("refusals/gang-needs-parallel"));
  const line =
    read("refusals/gang-needs-parallel")
      .split("\n")
      .findIndex((line) => line.includes("gang: {}")) + 1;
  assert.equal(announcement(judged), `Denied: 1 error. Line ${line}: ${GANG}`);
  assert.equal(announcement(judge(core, read("kep/field/minimal"))), "Allowed.");
});
