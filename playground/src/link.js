// The editor's text as a fragment of the address, which no browser sends to a server.

const NAME = "yaml=";
// Some bytes of a link can stand for any number of bytes of text.
const LIMIT = 512 * 1024;

export class BrokenLink extends Error {}

/** A text as a fragment, without the `#`. */
export async function encode(text) {
  const compressed = await collect(new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw")));
  let binary = "";
  for (const byte of compressed) binary += String.fromCharCode(byte);
  return NAME + btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The text of a fragment, with or without the `#`; undefined if there is none. */
export async function decode(fragment) {
  const content = fragment.replace(/^#/, "");
  if (content === "") return undefined;
  if (!content.startsWith(NAME)) throw new BrokenLink("it is not one of the playground");
  try {
    const binary = atob(content.slice(NAME.length).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await collect(stream));
  } catch (error) {
    throw error instanceof BrokenLink ? error : new BrokenLink("a part of it is missing or changed");
  }
}

async function collect(stream) {
  const chunks = [];
  let size = 0;
  // Not `for await`: not every browser iterates streams.
  const reader = stream.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    size += part.value.length;
    if (size > LIMIT) {
      reader.cancel().catch(() => {});
      throw new BrokenLink(`it holds more than ${LIMIT / 1024} KiB`);
    }
    chunks.push(part.value);
  }
  const all = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}
