// From the path of a field, as Kubernetes writes it, to the place in the text.
import { isAlias, isMap, isScalar, isSeq, parseDocument } from "yaml";
import { offsetsOf } from "./scalar.js";

/**
 * The range that a field stands at: its key, with its value if that is short. Where the field is not there,
 * it is the nearest one above it that is. `detail` may tell a line inside a value that is YAML itself.
 */
export function locate(text, { document, node }, field, detail = "") {
  const start = node.range?.[0] ?? 0;
  const found = walk(document, node, field === "" ? "" : `.${field}`, { start, end: start });
  const { place, scalar, rest } = found;
  if (!scalar) return onOneLine(text, place);
  const inner = rest === "" ? lineIn(scalar.value, detail) : placeIn(scalar.value, rest);
  if (!inner) return onOneLine(text, place);
  const offset = offsetsOf(text, scalar);
  const after = (index) => offset(index - 1) + 1;
  return onOneLine(text, { start: offset(inner.start), end: after(inner.end), key: inner.key && after(inner.key) });
}

/** Follows a path as far as it goes. It ends at a text if that is where the rest of the path, or of it, is. */
function walk(document, node, rest, place) {
  const target = isAlias(node) ? node.resolve(document) : node;
  if (isScalar(target) && typeof target.value === "string") return { place, scalar: target, rest };
  if (rest === "") return { place };
  const step = isMap(target) ? member(target, rest) : isSeq(target) ? item(target, rest) : undefined;
  return step ? walk(document, step.node, step.rest, step.place) : { place };
}

/** The member that a path goes on with. Keys have dots in them, so that it is the longest that fits. */
function member(map, rest) {
  let best;
  for (const pair of map.items) {
    const key = String(pair.key?.value ?? pair.key);
    const form = [`.${key}`, `[${key}]`].find(
      (form) => rest.startsWith(form) && /^([.[]|$)/.test(rest.slice(form.length)),
    );
    if (form && pair.key.range && !(best?.length >= form.length)) best = { pair, length: form.length };
  }
  if (!best) return undefined;
  const { key, value } = best.pair;
  const [start, end] = key.range;
  return { node: value, rest: rest.slice(best.length), place: { start, key: end, end: value?.range?.[1] ?? end } };
}

function item(sequence, rest) {
  const [form, index] = /^\[(\d+)\]/.exec(rest) ?? [];
  const node = sequence.items[Number(index)];
  if (!node?.range) return undefined;
  const [start, end] = node.range;
  return { node, rest: rest.slice(form.length), place: { start, end } };
}

function placeIn(value, rest) {
  const document = parseDocument(value, { uniqueKeys: false, prettyErrors: false, logLevel: "silent" });
  if (!document.contents) return undefined;
  const { place } = walk(document, document.contents, rest, { start: 0, end: 0 });
  return place.end > place.start ? place : undefined;
}

/** The line of a value that a message begins with. */
function lineIn(value, detail) {
  const line = Number(/^line (\d+)\b/.exec(detail)?.[1]);
  if (!line || !value.includes("\n")) return undefined;
  const lines = value.split("\n");
  const before = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  const content = lines[line - 1]?.trim();
  if (!content) return undefined;
  const start = before + lines[line - 1].indexOf(content);
  return { start, end: start + content.length };
}

/** Nobody wants a whole block selected: what goes beyond its line is cut to the key, or to the line. */
function onOneLine(text, { start, end, key }) {
  const line = text.slice(start, end).indexOf("\n");
  if (line < 0) return { start, end };
  return { start, end: key ?? start + text.slice(start, start + line).trimEnd().length };
}
