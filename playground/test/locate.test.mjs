// From the path of a field to the place in the text.
import assert from "node:assert/strict";
import { test } from "node:test";
import { locate } from "../src/locate.js";
import { parse } from "../src/manifests.js";

function at(text, field, detail) {
  const { objects, problems } = parse(text);
  assert.deepEqual(problems, []);
  const { start, end } = locate(text, objects[0], field, detail);
  return text.slice(start, end);
}

const KEY = "statefulset-scheduling.dev/scheduling";
const FIELD = `metadata.annotations[${KEY}]`;
const annotated = (value) => `metadata:\n  annotations:\n    ${KEY}: ${value}\n  name: x\n`;

test("a field is its key and a short value, or its key alone", () => {
  const text = "kind: X\nspec:\n  replicas: 3\n  list:\n  - name: a\n    b: {c: 1}\n  - name: z\n";
  assert.equal(at(text, "spec.replicas"), "replicas: 3");
  assert.equal(at(text, "spec"), "spec");
  assert.equal(at(text, "spec.list[0]"), "name: a");
  assert.equal(at(text, "spec.list[1].name"), "name: z");
  assert.equal(at(text, "spec.list[0].b.c"), "c: 1");
});

test("a field that is not there is the nearest one above it", () => {
  const text = "kind: X\nspec:\n  list: [a]\n  none:\n";
  assert.equal(at(text, "spec.podManagementPolicy"), "spec");
  assert.equal(at(text, "spec.list[3].key"), "list: [a]");
  assert.equal(at(text, "spec.none.deeper"), "none:");
  assert.equal(at(text, "nothing"), "");
  assert.equal(at(text, ""), "");
});

test("keys with dots and keys that begin alike are told apart", () => {
  const text = "spec:\n  gang: 1\n  gangway: 2\n  a: {b: 3}\n  a.b: 4\nlabels:\n  x.y/z: 5\n";
  assert.equal(at(text, "spec.gang"), "gang: 1");
  assert.equal(at(text, "spec.gangway"), "gangway: 2");
  assert.equal(at(text, "spec.a.b"), "a.b: 4");
  assert.equal(at(text, "labels[x.y/z]"), "x.y/z: 5");
});

test("a field of an annotation is found in every form of a YAML text", () => {
  const forms = [
    "|\n      disruptionMode:\n        all: {}\n      schedulingPolicy:\n        gang: {}",
    "|- # a comment\n\n      disruptionMode: {all: {}}\n\n      schedulingPolicy: {gang: {}}",
    ">\n      {disruptionMode: {all: {}},\n      schedulingPolicy: {gang: {}}}",
    `'{"disruptionMode":{"all":{}},"it''s": 1,"schedulingPolicy":{"gang": {}}}'`,
    '"{\\"é\\u00e9\\U0001F600\\": 1,\\n  \\"disruptionMode\\": {},\\t\\"schedulingPolicy\\": {\\"gang\\": {}}}"',
    "{}",
  ];
  const found = forms.map((form) => at(annotated(form), `${FIELD}.schedulingPolicy.gang`));
  assert.deepEqual(found, ["gang: {}", "gang: {}", "gang: {}", '"gang": {}', '\\"gang\\": {}', `${KEY}: {}`]);
});

test("a text that is not YAML is found as a whole, and by a line that a message tells", () => {
  const text = annotated("|\n      a: 1\n      b: ]");
  assert.equal(at(text, FIELD), KEY);
  assert.equal(at(text, FIELD, "line 2, column 4: misplaced bracket"), "b: ]");
  assert.equal(at(text, FIELD, "line 7: not there"), KEY);
  assert.equal(at(annotated('""'), FIELD, "is empty"), `${KEY}: ""`);
});

test("an alias and an anchor are followed", () => {
  const text = "a: &x {b: 1}\nspec: *x\n";
  assert.equal(at(text, "spec.b"), "b: 1");
});
