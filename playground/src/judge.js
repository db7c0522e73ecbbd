// Asks the core about a text. All rules are the core's: here, its answers only get their lines.
import { lineAt, lineText } from "./lines.js";
import { locate } from "./locate.js";
import { parse } from "./manifests.js";

/**
 * What the policy says about all StatefulSets of a text, and what becomes of them.
 *
 * `problems` are places that are not YAML; with any, nothing is judged, as nothing would be applied.
 */
export function judge(core, text) {
  const { objects, problems } = parse(text);
  const at = ({ start, end }) => {
    const line = lineAt(text, start);
    return { start, end, line, source: lineText(text, line) };
  };
  if (problems.length > 0) {
    // What is missing at the end of a text is said to be after it.
    const inside = (offset) => Math.min(offset, text.length);
    return {
      problems: problems.map(({ start, end, message }) => ({
        ...at({ start: inside(start), end: inside(end) }),
        body: message,
      })),
      sets: [],
      others: 0,
    };
  }
  const sets = objects.filter(({ value }) => value?.kind === "StatefulSet");
  return {
    problems: [],
    sets: sets.map((object) => judgeOne(core, object, (field, detail) => at(locate(text, object, field, detail)))),
    others: objects.length - sets.length,
  };
}

function judgeOne(core, { value }, place) {
  const name = String(value.metadata?.name ?? "");
  try {
    const verdict = core.review({ request: requestOf(value) });
    const compiled = verdict.allowed ? core.compile({ statefulSet: value }) : null;
    return {
      name,
      statefulSet: value,
      allowed: verdict.allowed,
      errors: errorsOf(verdict).map((error) => ({ ...error, ...place(error.field, error.detail) })),
      warnings: verdict.warnings.map((warning) => {
        const [, field, body] = /^(\S+): (.*)$/s.exec(warning) ?? [undefined, "", warning];
        return { field, body, ...place(field) };
      }),
      changes: verdict.patch,
      compiled: compiled && !compiled.errors ? compiled : null,
    };
  } catch (error) {
    // The core throws what it cannot read at all.
    const errors = [{ field: "", body: error.message, ...place("") }];
    return { name, statefulSet: value, allowed: false, errors, warnings: [], changes: [], compiled: null };
  }
}

/** A denial may be about no field. */
function errorsOf({ allowed, errors, message }) {
  return allowed || errors.length > 0 ? errors : [{ field: "", body: message }];
}

/** The request that `kubectl create` would make. */
function requestOf(object) {
  const [version, group = ""] = String(object.apiVersion ?? "apps/v1")
    .split("/")
    .reverse();
  return {
    kind: { group, version, kind: object.kind },
    operation: "CREATE",
    namespace: String(object.metadata?.namespace ?? "default"),
    name: String(object.metadata?.name ?? ""),
    object,
  };
}
