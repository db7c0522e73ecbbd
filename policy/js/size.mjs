// Prints the size of the package's module, and fails over its bounds.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { brotliCompressSync } from "node:zlib";

const KIB = 1024;
const BOUNDS = { bytes: 600 * KIB, brotli: 200 * KIB };

export function measure() {
  const module = readFileSync(new URL("../../dist/npm/core_bg.wasm", import.meta.url));
  const bytes = module.length;
  const brotli = brotliCompressSync(module).length;
  const text =
    `dist/npm/core_bg.wasm: ${bytes} bytes, bound ${BOUNDS.bytes} (${BOUNDS.bytes / KIB} KiB); ` +
    `${brotli} in brotli, bound ${BOUNDS.brotli} (${BOUNDS.brotli / KIB} KiB)`;
  return { ok: bytes <= BOUNDS.bytes && brotli <= BOUNDS.brotli, text };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { ok, text } = measure();
  console.log(text);
  process.exitCode = ok ? 0 : 1;
}
