// The fixtures of the repository, by their folders, and what is said of one.
import { readFileSync, readdirSync } from "node:fs";

/** The KEP's message about an OrderedReady gang. */
export const GANG =
  "Forbidden: gang scheduling requires podManagementPolicy: Parallel; " +
  "OrderedReady creates pods sequentially, which can never satisfy a gang";

const root = new URL("../../fixtures/", import.meta.url);

export const read = (name) => readFileSync(new URL(`${name}.yaml`, root), "utf8");

/** The names of all manifests of a folder. */
export function names(folder) {
  return readdirSync(new URL(`${folder}/`, root))
    .filter((name) => name.endsWith(".yaml") && !/\.(old|expected)\.yaml$/.test(name))
    .map((name) => `${folder}/${name.slice(0, -".yaml".length)}`);
}

export const refusals = names("refusals");
/** Those that are refused as they are created; the others need the object that was there before. */
export const refusedOnCreate = (judged) => judged.sets.some(({ allowed }) => !allowed);
