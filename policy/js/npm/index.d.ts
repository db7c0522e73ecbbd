export type * from "./core.js";
export { compile, query, review, validate } from "./core.js";

/**
 * Loads the module, once: from where it lies beside this file, or from an address, a response or bytes.
 * In Node it is loaded already, and this does nothing.
 */
export function init(source?: string | URL | Request | Response | Promise<Response> | BufferSource | WebAssembly.Module): Promise<void>;
export default init;
