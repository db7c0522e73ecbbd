// Lines of a text, counted from one as people do.

export function lineAt(text, offset) {
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < offset; at = text.indexOf("\n", at + 1)) line++;
  return line;
}

export function lineText(text, line) {
  return (text.split("\n")[line - 1] ?? "").trimEnd();
}
