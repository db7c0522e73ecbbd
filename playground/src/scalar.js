// Where the characters of a YAML text stand that is itself a value in a YAML text, as an annotation is.

const BLOCK = new Set(["BLOCK_LITERAL", "BLOCK_FOLDED"]);
const SPACE = /\s/;
const HEX = { x: 2, u: 4, U: 8 };

/**
 * A function from an index into a scalar's value to an offset in the text.
 *
 * Indenting, folding and escaping a text changes its spaces, and never the order of all else: so the n-th
 * character that is not a space is the same on both sides.
 */
export function offsetsOf(text, scalar) {
  const [start, end] = scalar.range;
  const body = BLOCK.has(scalar.type) ? text.indexOf("\n", start) + 1 : start;
  const units = unitsOf(scalar.type, text, body, end);
  const { value } = scalar;
  return (index) => {
    let count = 0;
    for (let at = 0; at < index; at++) if (!SPACE.test(value[at])) count++;
    return units[count] ?? end;
  };
}

/** The offsets of all that is not a space. */
function unitsOf(type, text, start, end) {
  if (type === "QUOTE_DOUBLE") return escapedUnits(text, start + 1, end - 1);
  const units = [];
  const quoted = type === "QUOTE_SINGLE";
  for (let at = quoted ? start + 1 : start; at < (quoted ? end - 1 : end); at++) {
    if (SPACE.test(text[at])) continue;
    units.push(at);
    if (quoted && text[at] === "'") at++; // Two stand for one.
  }
  return units;
}

function escapedUnits(text, start, end) {
  const units = [];
  let at = start;
  while (at < end) {
    const [length, content] = text[at] === "\\" ? escape(text, at) : [1, text[at]];
    for (const unit of content.split("")) if (!SPACE.test(unit)) units.push(at);
    at += length;
  }
  return units;
}

/** The length of an escape sequence, and what it stands for; all that are left out stand for a space. */
function escape(text, at) {
  const kind = text[at + 1] ?? "";
  if (HEX[kind]) {
    const digits = text.slice(at + 2, at + 2 + HEX[kind]);
    return [2 + HEX[kind], String.fromCodePoint(Math.min(Number.parseInt(digits, 16) || 0, 0x10ffff))];
  }
  if (kind === "0" || kind === "a" || kind === "b" || kind === "e") return [2, "\u0000"];
  return [2, /["\\/]/.test(kind) ? kind : " "];
}
