// Texts in links.
import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";
import { BrokenLink, decode, encode } from "../src/link.js";
import { names, read } from "./fixtures.mjs";

test("every text comes back from its link", async () => {
  const texts = ["", "\n", "\ufeffa", "é\u{1f600}\u0000", "a".repeat(100_000)];
  for (const text of [...texts, ...names("kep/annotation").map(read)]) {
    const fragment = await encode(text);
    assert.match(fragment, /^yaml=[A-Za-z0-9_-]*$/);
    assert.equal(await decode(fragment), text);
    assert.equal(await decode(`#${fragment}`), text);
  }
});

test("a link to a manifest is shorter than the manifest", async () => {
  for (const name of names("kep/field")) assert.ok((await encode(read(name))).length < read(name).length, name);
});

test("an address without a fragment holds nothing", async () => {
  assert.equal(await decode(""), undefined);
  assert.equal(await decode("#"), undefined);
});

test("a broken link is told as such", async () => {
  const good = await encode(read("kep/field/my-db"));
  const bad = [
    "#x",
    "#yaml",
    "#yaml=",
    "#yaml=%",
    "#yaml=!!!!",
    "#yaml=AAAA",
    good.slice(0, -9),
    good.replace("=", "=A"),
  ];
  const notText = `yaml=${deflateRawSync(Buffer.from([0xff, 0xfe, 0xff])).toString("base64url")}`;
  for (const fragment of [...bad, notText]) await assert.rejects(decode(fragment), BrokenLink, fragment);
});

test("a short link does not become a text without end", async () => {
  const bomb = deflateRawSync(Buffer.alloc(64 * 1024 * 1024)).toString("base64url");
  await assert.rejects(decode(`yaml=${bomb}`), /more than 512 KiB/);
});
