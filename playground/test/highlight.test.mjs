// The colours of a line.
import assert from "node:assert/strict";
import { test } from "node:test";
import { tokens } from "../src/highlight.js";
import { names, read } from "./fixtures.mjs";

const coloured = (line) => tokens(line).filter(([kind]) => kind !== "text");

test("the tokens of a line are the line", () => {
  const manifests = [...names("refusals"), ...names("kep/annotation"), ...names("real-world")].map(read);
  const strange = [
    "",
    " ",
    "\t",
    "'",
    '"',
    "a: 'b",
    '{"a":"b\\"c"}',
    "é\u{1f600}: #",
    "a#b",
    ": : :",
    "\u0000",
    "\ud800",
    "---",
  ];
  for (const line of [...manifests.flatMap((text) => text.split("\n")), ...strange]) {
    assert.equal(
      tokens(line)
        .map(([, text]) => text)
        .join(""),
      line,
    );
  }
});

test("keys, values, strings and comments are told apart", () => {
  assert.deepEqual(coloured("  replicas: 3  # three"), [
    ["key", "replicas"],
    ["mark", ":"],
    ["value", "3"],
    ["comment", "# three"],
  ]);
  assert.deepEqual(coloured('- nvidia.com/gpu: "1"'), [
    ["mark", "-"],
    ["key", "nvidia.com/gpu"],
    ["mark", ":"],
    ["string", '"1"'],
  ]);
  assert.deepEqual(coloured("    gang: {}"), [
    ["key", "gang"],
    ["mark", ":"],
    ["mark", "{}"],
  ]);
  assert.deepEqual(coloured("image: my-org/shard:latest#1"), [
    ["key", "image"],
    ["mark", ":"],
  ]);
});
