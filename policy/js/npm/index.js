// For browsers: the functions answer once `init` has loaded the module.
import start from "./core.js";

export { compile, query, review, validate } from "./core.js";

export async function init(source) {
  await start(source === undefined ? undefined : { module_or_path: source });
}

export default init;
