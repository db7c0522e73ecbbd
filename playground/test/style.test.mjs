// The colours can be read: AA wants 4.5 for text, 3 for what is not text.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const css = readFileSync(new URL("../src/style.css", import.meta.url), "utf8");
const colours = new Map(
  [...css.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g)].map(([, name, light, dark]) => [
    name,
    [light, dark],
  ]),
);

function luminance(hex) {
  const [r, g, b] = [1, 3, 5]
    .map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a, b) {
  const [high, low] = [luminance(a), luminance(b)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}

function check(bound, pairs) {
  for (const [front, backs] of pairs) {
    for (const back of backs) {
      for (const theme of [0, 1]) {
        const found = contrast(colours.get(front)[theme], colours.get(back)[theme]);
        assert.ok(found >= bound, `${front} on ${back}, ${["light", "dark"][theme]}: ${found.toFixed(2)}`);
      }
    }
  }
}

test("text can be read on what it stands on, light and dark", () => {
  const sheets = ["page", "sheet", "sunk"];
  const lines = ["sheet", "error-tint", "warning-tint"];
  check(4.5, [
    ["ink", [...sheets, "pod", "ok-tint", "error-tint", "warning-tint"]],
    ["quiet", [...sheets, ...lines]],
    ["accent", sheets],
    ["on-accent", ["accent"]],
    ["ok", ["ok-tint", "page"]],
    ["error", ["error-tint", "page", "sheet"]],
    ["warning", ["warning-tint", "page", "sheet"]],
    ...["t-key", "t-string", "t-value", "t-comment"].map((token) => [token, lines]),
  ]);
});

test("lines that mean something can be seen, light and dark", () => {
  check(3, [
    ["edge", ["page", "sheet", "sunk"]],
    ["unit", ["sheet"]],
    ["accent", ["sheet", "pod"]],
  ]);
});
