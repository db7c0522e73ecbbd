// For Node: the module is read from beside this file, so that there is nothing to wait for.
import { readFileSync } from "node:fs";
import { initSync } from "./core.js";

export { compile, query, review, validate } from "./core.js";

initSync({ module: readFileSync(new URL("./core_bg.wasm", import.meta.url)) });

export async function init() {}

export default init;
