// Bundles the playground into dist/playground: files for any static host, under any path.
import { build } from "esbuild";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { examples } from "./examples.mjs";

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const out = path("../dist/playground/");

if (!existsSync(path("../dist/npm/core_bg.wasm"))) {
  console.error("playground: dist/npm is missing; make npm builds it");
  process.exit(1);
}

// The examples are read while bundling, so that there is one copy of each: the fixture.
const exampleModule = {
  name: "examples",
  setup(bundler) {
    bundler.onResolve({ filter: /^examples$/ }, () => ({ path: "examples", namespace: "examples" }));
    bundler.onLoad({ filter: /.*/, namespace: "examples" }, () => ({
      contents: `export default ${JSON.stringify(examples())}`,
    }));
  },
};

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });

// The names tell the content: a host may cache them for ever, and they are never mixed between versions.
const { metafile } = await build({
  absWorkingDir: path("."),
  entryPoints: ["src/main.js", "src/theme.js", "src/style.css"],
  outdir: out,
  entryNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  bundle: true,
  minify: true,
  format: "esm",
  target: ["chrome123", "firefox120", "safari17.5"],
  loader: { ".wasm": "file" },
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
  plugins: [exampleModule],
});

const built = {};
for (const name of Object.keys(metafile.outputs)) {
  const file = basename(name);
  built[file.replace(/-[^-.]+(\.\w+)$/, "$1")] = file;
}
const page = readFileSync(path("src/index.html"), "utf8").replace(/\{\{([\w.]+)\}\}/g, (_, name) => {
  if (!built[name]) throw new Error(`the page needs ${name}, which was not built`);
  return built[name];
});
writeFileSync(`${out}index.html`, page);
cpSync(path("src/icon.svg"), `${out}icon.svg`);
cpSync(path("../LICENSE"), `${out}LICENSE`);
cpSync(path("node_modules/yaml/LICENSE"), `${out}LICENSE.yaml`);
