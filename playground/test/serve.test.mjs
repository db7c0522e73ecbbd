// The server of the built files.
import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, test } from "node:test";
import { measure } from "../size.mjs";
import { serve } from "../serve.mjs";

let served;
before(async () => (served = await serve()));
after(() => {
  served.server.closeAllConnections();
  served.server.close();
});

test("the page and the module are served with their types, to this machine only", async () => {
  const page = await fetch(served.url);
  assert.equal(page.headers.get("content-type"), "text/html; charset=utf-8");
  const [name] = /core_bg-\w+\.wasm/.exec(await page.text());
  const module = await fetch(served.url + name);
  assert.equal(module.headers.get("content-type"), "application/wasm");
  await WebAssembly.compileStreaming(module);
  assert.equal(served.server.address().address, "127.0.0.1");
});

test("nothing outside of the folder is served", async () => {
  const { port } = new URL(served.url);
  for (const path of ["/../npm/core.js", "/..%2fnpm%2fcore.js", "/%2e%2e/npm/core.js", "/nothing", "/%"]) {
    const status = await new Promise((resolve, reject) => {
      request({ port, host: "127.0.0.1", path }, (response) => resolve(response.resume().statusCode))
        .on("error", reject)
        .end();
    });
    assert.equal(status, 404, path);
  }
  assert.equal((await fetch(served.url, { method: "POST" })).status, 405);
  assert.equal((await fetch(served.url, { method: "HEAD" })).status, 200);
});

test("a port that is taken is replaced by a free one", async () => {
  const { port } = new URL(served.url);
  const second = await serve({ port: Number(port) });
  assert.notEqual(second.url, served.url);
  second.server.close();
});

test("a first load is not larger than its bound", () => {
  const { gzip, bound } = measure();
  assert.ok(gzip <= bound, `${gzip} of ${bound}`);
});
