// The examples are fixtures; the comment in a fixture's first line is its title.
import { readFileSync } from "node:fs";

const KEP = [
  "story-1-cockroachdb",
  "zookeeper",
  "story-2-llm-shards",
  "story-3-training-shards",
  "story-4-shard-server",
  "my-db",
  "ordered-ready-basic",
  "minimal",
];
const REFUSED = [
  "gang-needs-parallel",
  "everything-at-once",
  "disruption-all-with-basic",
  "unknown-field-in-annotation",
  "annotation-duplicate-key",
  "both-carriers",
];

export const groups = [
  { title: "KEP-6277, in spec.scheduling", folder: "kep/field", names: KEP },
  { title: "The same, in the annotation", folder: "kep/annotation", names: KEP },
  { title: "Denied", folder: "refusals", names: REFUSED },
];

export function examples() {
  return groups.map(({ title, folder, names }) => ({
    title,
    examples: names.map((name) => {
      const text = readFileSync(new URL(`../fixtures/${folder}/${name}.yaml`, import.meta.url), "utf8");
      return { id: `${folder}/${name}`, title: titleOf(text), text };
    }),
  }));
}

function titleOf(text) {
  const title = /^# (.+?)\.?\n/.exec(text)?.[1];
  if (!title) throw new Error(`an example has no title:\n${text}`);
  return title;
}
