// Prints what a first load of the playground transfers, and fails over its bound.
import { readFileSync, readdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";

const BOUND = 400 * 1024;
const folder = new URL("../dist/playground/", import.meta.url);

export function measure() {
  // All that the page refers to; the licences are there for whoever copies the folder.
  const files = readdirSync(folder).filter((name) => !name.startsWith("LICENSE"));
  const rows = files.map((name) => {
    const content = readFileSync(new URL(name, folder));
    return {
      name,
      bytes: content.length,
      gzip: gzipSync(content, { level: 9 }).length,
      brotli: brotliCompressSync(content).length,
    };
  });
  const sum = (column) => rows.reduce((total, row) => total + row[column], 0);
  return { rows, bytes: sum("bytes"), gzip: sum("gzip"), brotli: sum("brotli"), bound: BOUND };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { rows, ...total } = measure();
  for (const { name, bytes, gzip, brotli } of [...rows, { name: "first load", ...total }]) {
    const columns = [bytes, gzip, brotli].map((size) => String(size).padStart(8));
    console.log(`${name.padEnd(26)} ${columns[0]} bytes ${columns[1]} gzip ${columns[2]} brotli`);
  }
  // Every host can do gzip, so it is gzip that is bounded.
  console.log(`bound ${total.bound} (${total.bound / 1024} KiB) in gzip`);
  process.exitCode = total.gzip <= total.bound ? 0 : 1;
}
