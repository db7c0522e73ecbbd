// Serves dist/playground, to this machine only.
import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};
export const FOLDER = fileURLToPath(new URL("../dist/playground/", import.meta.url));

function find(folder, url) {
  try {
    const name = decodeURIComponent(new URL(url, "http://localhost").pathname);
    const path = normalize(join(folder, name.endsWith("/") ? `${name}index.html` : name));
    return path.startsWith(join(folder, sep)) && statSync(path).isFile() ? path : undefined;
  } catch {
    return undefined;
  }
}

function answer(folder, request, response) {
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.writeHead(405, { allow: "GET, HEAD" }).end();
    return;
  }
  const path = find(folder, request.url);
  if (!path) {
    response.writeHead(404, { "content-type": "text/plain" }).end("not found\n");
    return;
  }
  response.writeHead(200, {
    "content-type": TYPES[extname(path)] ?? "text/plain; charset=utf-8",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
  });
  if (request.method === "HEAD") response.end();
  else
    createReadStream(path)
      .on("error", () => response.destroy())
      .pipe(response);
}

/** Starts a server on a port, on any free one if it is taken; resolves to the server and its address. */
export function serve({ folder = FOLDER, port = 0 } = {}) {
  const server = createServer((request, response) => answer(folder, request, response));
  return new Promise((resolve, reject) => {
    server.on("error", (error) => {
      if (error.code === "EADDRINUSE" && port !== 0) server.listen((port = 0), "127.0.0.1");
      else reject(error);
    });
    server.on("listening", () => resolve({ server, url: `http://127.0.0.1:${server.address().port}/` }));
    server.listen(port, "127.0.0.1");
  });
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { url } = await serve({ port: Number(process.env.PORT ?? 8277) });
  console.log(`the playground is at ${url} (Ctrl-C stops it)`);
}
