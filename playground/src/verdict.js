// The verdict as elements.
import { html, svg } from "./dom.js";
import { plural } from "./reading.js";

/** How a judgement is called: its kind and its headline. */
export function headline({ problems, sets }) {
  if (problems.length > 0) return { kind: "error", text: "Not YAML" };
  if (sets.length === 0) return { kind: "none", text: "Nothing to review" };
  const denied = sets.filter(({ allowed }) => !allowed);
  const errors = sets.reduce((count, { errors }) => count + errors.length, 0);
  const warnings = sets.reduce((count, { warnings }) => count + warnings.length, 0);
  const counts = [errors > 0 && plural(errors, "error"), warnings > 0 && plural(warnings, "warning")].filter(Boolean);
  const word =
    sets.length === 1
      ? denied.length > 0
        ? "Denied"
        : "Allowed"
      : denied.length === 0
        ? `All ${sets.length} allowed`
        : `${denied.length} of ${sets.length} denied`;
  const kind = denied.length > 0 ? "error" : warnings > 0 ? "warning" : "ok";
  return { kind, text: [word, counts.join(", ")].filter(Boolean).join(": ") };
}

/** What stands below the headline. */
export function explain({ problems, sets, others }) {
  if (problems.length > 0) return "Nothing is reviewed until the text can be read.";
  if (sets.length === 0) return "There is no StatefulSet in the text.";
  const left = others > 0 ? ` ${plural(others, "other object")} left alone.` : "";
  const [set] = sets;
  if (sets.length > 1) return `${plural(sets.length, "StatefulSet")}.${left}`;
  const name = set.name ? `StatefulSet ${set.name}` : "A StatefulSet without a name";
  return `${name} ${fate(set)}.${left}`;
}

function fate({ allowed, compiled }) {
  if (!allowed) return "would not be stored, so nothing is compiled";
  return compiled ? "gets one Workload and one PodGroup" : "asks for no group, so nothing is compiled";
}

/** All that is to be said about lines, in the order in which the core says it. */
export function findings({ problems, sets }) {
  return [
    ...problems.map((problem) => ({ ...problem, kind: "error" })),
    ...sets.flatMap(({ errors, warnings }) => [
      ...errors.map((error) => ({ ...error, kind: "error" })),
      ...warnings.map((warning) => ({ ...warning, kind: "warning" })),
    ]),
  ];
}

/** What a screen reader says of it: short, and the first line to go to. */
export function announcement(judgement) {
  const first = findings(judgement)[0];
  const { text } = headline(judgement);
  return first ? `${text}. Line ${first.line}: ${first.body}` : `${text}.`;
}

export function findingElement(finding, onSelect) {
  const { kind, line, source, field, body } = finding;
  return html(
    "li",
    { class: `finding ${kind}` },
    html(
      "button",
      { type: "button", class: "place", click: () => onSelect(finding) },
      html("span", { class: "visually-hidden" }, `${kind === "error" ? "Error" : "Warning"}, go to `),
      html("span", { class: "number" }, html("span", { "aria-hidden": "true" }, SIGNS[kind]), ` line ${line}`),
      html("code", { class: "source" }, source.trim()),
    ),
    html("p", { class: "body" }, body),
    field && html("p", { class: "field" }, html("code", {}, field)),
  );
}

// As in the editor.
const SIGNS = { error: "✕", warning: "!" };

const SHAPES = {
  ok: "M5 12.5l4.5 4.5L19 7.5",
  error: "M6.5 6.5l11 11M17.5 6.5l-11 11",
  warning: "M12 6v7.5M12 17.2v.3",
  none: "M6 12h12",
};

export function icon(kind) {
  return svg([
    "svg",
    { viewBox: "0 0 24 24", width: 24, height: 24, "aria-hidden": "true", class: "icon" },
    ["path", { d: SHAPES[kind] }],
  ]);
}
