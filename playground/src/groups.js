// The groups as elements: of each StatefulSet that gets one the drawing, the words, the two objects.
import { stringify } from "yaml";
import { coloured, html, svg } from "./dom.js";
import { draw } from "./drawing.js";
import { factsOf, groupOf } from "./reading.js";

// A drawing is made for a width between these; where there is less room, it is made smaller.
const NARROWEST = 240;
const WIDEST = 620;

export function groupElement(set, index, onCopy) {
  const group = groupOf(set);
  const { workload, podGroup } = set.compiled;
  return html(
    "article",
    { class: "group" },
    html("h2", {}, `What the group ${set.name && `of ${set.name} `}means`),
    drawingElement(group, `group-${index}`),
    html("dl", { class: "facts" }, ...factsOf(group).map(factElement)),
    html("h2", {}, "What it is compiled to"),
    html(
      "p",
      { class: "note" },
      "The controller creates these two. What only an API server knows is written ",
      html("code", {}, "<…-uid>"),
      "; the ends of the names depend on it.",
    ),
    objectElement(workload, `workload-${index}`, onCopy),
    objectElement(podGroup, `podgroup-${index}`, onCopy),
  );
}

/** A drawing is as wide as there is room, and drawn again when that changes. */
function drawingElement(group, id) {
  const frame = html("div", { class: "picture" });
  let drawn = 0;
  new ResizeObserver(([{ contentRect }]) => {
    const width = Math.max(NARROWEST, Math.min(WIDEST, Math.floor(contentRect.width)));
    if (width === drawn) return;
    drawn = width;
    frame.replaceChildren(svg(draw(group, width, id)));
  }).observe(frame);
  return frame;
}

function factElement({ term, text }) {
  const parts = text.map((part) => (part.code === undefined ? part : html("code", {}, part.code)));
  return html("div", {}, html("dt", {}, term), html("dd", {}, ...parts));
}

function objectElement(object, id, onCopy) {
  const text = stringify(tidy(object), { lineWidth: 0, indentSeq: false });
  const lines = text.trimEnd().split("\n");
  return html(
    "div",
    { class: "object" },
    html(
      "header",
      {},
      html("h3", { id }, object.kind),
      html(
        "button",
        { type: "button", class: "quiet", click: () => onCopy(text, object.kind) },
        "Copy",
        html("span", { class: "visually-hidden" }, ` the ${object.kind}`),
      ),
    ),
    // It scrolls, so the keyboard must reach it.
    html(
      "pre",
      { tabindex: "0", role: "region", "aria-labelledby": id },
      html("code", {}, ...lines.flatMap((line) => [...coloured(line), "\n"])),
    ),
  );
}

/** As one writes it: without the members that hold nothing. */
function tidy({ metadata, ...object }) {
  const { apiVersion, kind, ...rest } = object;
  const kept = Object.entries(metadata).filter(([, value]) => value !== null && value !== "");
  return { apiVersion, kind, metadata: Object.fromEntries(kept), ...rest };
}
