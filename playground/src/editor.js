// The editor: a text area, which browsers and screen readers know all about, over a coloured copy of its
// text. It is as large as its text, so that only the frame around both scrolls.
import { byId, coloured, html } from "./dom.js";

export function createEditor({ onInput }) {
  const frame = byId("editor-frame");
  const area = byId("editor");
  const copy = byId("editor-copy");
  let lines = [];

  function paint() {
    const next = area.value.split("\n");
    // Only lines that differ are made anew: typing stays fast in a long text.
    let head = 0;
    while (head < next.length && head < lines.length && next[head] === lines[head]) head++;
    let tail = 0;
    while (tail < Math.min(next.length, lines.length) - head && next.at(-1 - tail) === lines.at(-1 - tail)) tail++;
    for (let count = lines.length - head - tail; count > 0; count--) copy.children[head].remove();
    const made = next.slice(head, next.length - tail).map(row);
    if (head === 0) copy.prepend(...made);
    else copy.children[head - 1].after(...made);
    lines = next;
    frame.style.setProperty("--digits", String(lines.length).length);
  }

  area.addEventListener("input", () => {
    paint();
    onInput(area.value);
  });

  // A new line starts where the last one did.
  area.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const before = area.value.slice(0, area.selectionStart);
    const indent = /^ */.exec(before.slice(before.lastIndexOf("\n") + 1))[0];
    if (indent === "") return;
    event.preventDefault();
    insert(area, `\n${indent}`);
  });

  return {
    get text() {
      return area.value;
    },

    /** Replaces the text, so that undo brings the old one back. */
    replace(text) {
      if (text === area.value) return;
      if (area.value === "") area.value = text;
      else {
        area.focus({ preventScroll: true });
        area.select();
        insert(area, text);
      }
      area.setSelectionRange(0, 0);
      frame.scrollTo(0, 0);
      paint();
    },

    /** Marks lines: a map from a line to `error` or `warning`. */
    mark(marks) {
      copy.querySelectorAll("[data-mark]").forEach((line) => delete line.dataset.mark);
      for (const [line, kind] of marks) if (copy.children[line - 1]) copy.children[line - 1].dataset.mark = kind;
      const denied = [...marks.values()].includes("error");
      area.setAttribute("aria-invalid", String(denied));
    },

    /** Goes to a range, and shows its line in the middle. */
    select({ start, end, line }) {
      area.focus({ preventScroll: true });
      area.setSelectionRange(start, end);
      const { offsetTop, offsetHeight } = copy.children[Math.min(line, lines.length) - 1];
      frame.scrollTo({ top: offsetTop - (frame.clientHeight - offsetHeight) / 2, left: 0 });
      frame.scrollIntoView({ block: "nearest" });
    },
  };
}

function row(line) {
  return html("div", { class: "line" }, ...coloured(line));
}

/** Inserts at the selection as if it were typed; only so is it a step that can be undone. */
function insert(area, text) {
  if (document.execCommand("insertText", false, text)) return;
  area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
  area.dispatchEvent(new Event("input"));
}
