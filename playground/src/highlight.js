// The colours of a line of YAML. Each line is for itself, so that a block of YAML in YAML has them too.

const TOKEN = new RegExp(
  [
    /(?<comment>(?<![^\s])#.*)/,
    /(?<key>[\w][\w./-]*(?=:(?:\s|$))|"[^"\n]*"(?=:))/,
    /(?<string>"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')/,
    /(?<mark>---|[-:|>,{}[\]]+(?=\s|$|[{}[\],])|[{}[\],])/,
    /(?<value>(?<=[\s{[,:])(?:true|false|null|~|-?\d+(?:\.\d+)?)(?=[\s,}\]]|$))/,
    /(?<text>[^\s"'#{}[\],:]+|.)/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "gu",
);

/** A line as tokens `[kind, text]`; together they are the line, character by character. */
export function tokens(line) {
  const found = [];
  for (const { groups } of line.matchAll(TOKEN)) {
    const [kind, text] = Object.entries(groups).find(([, text]) => text !== undefined);
    const last = found.at(-1);
    if (last?.[0] === kind) last[1] += text;
    else found.push([kind, text]);
  }
  return found;
}
