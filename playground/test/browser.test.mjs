// The playground as people use it, in a real browser.
import assert from "node:assert/strict";
import { readFileSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { examples } from "../examples.mjs";
import { encode } from "../src/link.js";
import { serve } from "../serve.mjs";
import { open, start } from "./browser.mjs";
import { GANG, read } from "./fixtures.mjs";

const SCREENSHOTS = fileURLToPath(new URL("../../dist/playground-screenshots/", import.meta.url));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let started;
before(async () => (started = await start()));
after(() => started.stop());

/** A page for one test, which must not have anything to complain about. */
async function use(options, body) {
  const opened = await open(started, options);
  try {
    await body(opened.page, opened);
    assert.deepEqual(opened.complaints, []);
  } finally {
    await opened.context.close();
  }
}

const text = (page, selector) => page.$eval(selector, (element) => element.textContent);
const value = (page) => page.$eval("#editor", (area) => area.value);
const headlineIs = (page, expected) =>
  page.waitForFunction(
    (expected) => document.getElementById("verdict-headline").textContent === expected,
    {},
    expected,
  );
const findings = (page) =>
  page.$$eval(".finding", (all) =>
    all.map((one) => ({
      line: Number(/line (\d+)/.exec(one.querySelector(".number").textContent)[1]),
      source: one.querySelector(".source").textContent,
      body: one.querySelector(".body").textContent,
      field: one.querySelector(".field")?.textContent,
    })),
  );
const marked = (page) =>
  page.$$eval("#editor-copy .line", (lines) =>
    lines.flatMap(({ dataset }, index) => (dataset.mark ? [[index + 1, dataset.mark]] : [])),
  );
const caretLine = (page) =>
  page.$eval("#editor", (area) => area.value.slice(0, area.selectionStart).split("\n").length);
const focused = (page) =>
  page.evaluate(() => document.activeElement.id || document.activeElement.className || document.activeElement.tagName);

const isSeen = (page, line) =>
  page.evaluate((line) => {
    const frame = document.getElementById("editor-frame").getBoundingClientRect();
    const row = document.querySelectorAll("#editor-copy .line")[line - 1].getBoundingClientRect();
    return row.top >= frame.top && row.bottom <= frame.bottom && row.bottom <= innerHeight;
  }, line);

async function clear(page) {
  await page.focus("#editor");
  await page.keyboard.down("Control");
  await page.keyboard.press("a");
  await page.keyboard.up("Control");
  await page.keyboard.press("Backspace");
}

/** Types as somebody would: the editor indents a new line, and that is corrected. */
async function type(page, manifest) {
  let indent = 0;
  for (const [index, line] of manifest.trimEnd().split("\n").entries()) {
    if (index > 0) await page.keyboard.press("Enter");
    const wanted = /^ */.exec(line)[0].length;
    for (; indent > wanted; indent--) await page.keyboard.press("Backspace");
    await page.keyboard.type(line.slice(indent));
    indent = wanted;
  }
}

/** Selects a word in the editor, as a double click does, and types another one. */
async function retype(page, word, other) {
  await page.focus("#editor");
  await page.$eval(
    "#editor",
    (area, word) => area.setSelectionRange(area.value.indexOf(word), area.value.indexOf(word) + word.length),
    word,
  );
  await page.keyboard.type(other);
}

const TYPED = `apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: typed
spec:
  replicas: 3
  podManagementPolicy: OrderedReady
  scheduling:
    schedulingPolicy:
      gang: {}
`;

test("typing an OrderedReady gang shows the KEP's message at its line, and Parallel clears it", async () => {
  await use({}, async (page) => {
    await clear(page);
    await headlineIs(page, "Nothing to review");
    await type(page, TYPED);
    assert.equal(await value(page), TYPED.trimEnd());
    await headlineIs(page, "Denied: 1 error");
    assert.deepEqual(await findings(page), [
      { line: 10, source: "gang: {}", body: GANG, field: "spec.scheduling.schedulingPolicy.gang" },
    ]);
    assert.deepEqual(await marked(page), [[10, "error"]]);
    assert.equal(await page.$(".drawing"), null);

    await retype(page, "OrderedReady", "Parallel");
    await headlineIs(page, "Allowed");
    assert.deepEqual([await findings(page), await marked(page)], [[], []]);
    await page.waitForSelector(".drawing");
    assert.match(await text(page, ".drawing title"), /typed: 3 pods/);
  });
});

test("each error is at its line, and leads there", async () => {
  const manifest = read("refusals/everything-at-once");
  const lineOf = (part) => manifest.split("\n").findIndex((line) => line.includes(part)) + 1;
  await use({ fragment: `#${await encode(manifest)}` }, async (page) => {
    await headlineIs(page, "Denied: 5 errors, 1 warning");
    const lines = ["gang:", "minCount:", "partition:", "topology:", "- name: volume", "- name: volume"].map(lineOf);
    assert.deepEqual(
      (await findings(page)).map(({ line }) => line),
      lines,
    );
    const unique = [...new Set(lines)].sort((a, b) => a - b);
    assert.deepEqual(
      await marked(page),
      unique.map((line) => [line, "error"]),
    );
    for (const [index, line] of lines.entries()) {
      const buttons = await page.$$(".finding .place");
      await buttons[index].click();
      assert.equal(await focused(page), "editor");
      assert.equal(await caretLine(page), line);
      assert.ok(await isSeen(page, line), `line ${line} is seen`);
    }
  });
});

test("what is typed at the end of a long text is seen", async () => {
  await use({ width: 360, height: 740 }, async (page) => {
    await page.focus("#editor");
    await page.keyboard.down("Control");
    await page.keyboard.press("End");
    await page.keyboard.up("Control");
    await page.keyboard.type("# the end");
    const lines = (await value(page)).split("\n");
    assert.equal(lines.at(-1), "# the end");
    assert.ok(await isSeen(page, lines.length));
  });
});

test("an error in an annotation is at its line in the manifest", async () => {
  const manifest = read("refusals/unknown-field-in-annotation");
  await use({ fragment: `#${await encode(manifest)}` }, async (page) => {
    const [{ line, field }] = await findings(page);
    assert.match(manifest.split("\n")[line - 1], /schedulingPollicy/);
    assert.match(field, /^metadata\.annotations\[statefulset-scheduling\.dev\/scheduling\]\.schedulingPollicy$/);
  });
});

test("what is not YAML is shown at its line", async () => {
  await use({ fragment: `#${await encode("kind: StatefulSet\nspec: [1\n")}` }, async (page) => {
    await headlineIs(page, "Not YAML");
    assert.equal((await findings(page)).length > 0, true);
    assert.equal((await marked(page)).length > 0, true);
  });
});

test("all examples load, with the verdict that they stand for", async () => {
  await use({}, async (page) => {
    for (const { title, examples: list } of examples()) {
      for (const { id, text: expected } of list) {
        await page.select("#examples", id);
        await page.waitForFunction((expected) => document.getElementById("editor").value === expected, {}, expected);
        const headline = await text(page, "#verdict-headline");
        assert.match(headline, title === "Denied" ? /^Denied: \d error/ : /^Allowed$/, id);
        assert.equal(
          await page.$$eval(".object h3", (all) => all.map((one) => one.textContent).join()),
          title === "Denied" ? "" : "Workload,PodGroup",
          id,
        );
        assert.equal(await page.$eval("#examples", (select) => select.value), id);
      }
    }
    await page.focus("#editor");
    await page.keyboard.type("# mine: ");
    assert.equal(await page.$eval("#examples", (select) => select.selectedOptions[0].textContent), "your own");
  });
});

test("the compiled objects are YAML, and can be copied", async () => {
  await use({ prepare: allowClipboard }, async (page) => {
    await page.select("#examples", "kep/field/my-db");
    await page.waitForFunction(() => document.querySelector(".facts")?.textContent.includes("shared-device"));
    assert.match(
      await text(page, ".object:last-of-type pre"),
      /^apiVersion: scheduling\.k8s\.io\/v1beta1\nkind: PodGroup\n/,
    );
    await (await page.$$(".object button"))[1].click();
    await page.waitForFunction(() => document.getElementById("copied").textContent === "PodGroup copied");
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(copied.trim(), (await text(page, ".object:last-of-type pre")).trim());
  });
});

test("an example can be undone", async () => {
  await use({}, async (page) => {
    await clear(page);
    await page.keyboard.type("mine");
    await page.select("#examples", "kep/field/my-db");
    await page.waitForFunction(() => document.getElementById("editor").value.includes("my-db"));
    await page.focus("#editor");
    await page.keyboard.down("Control");
    await page.keyboard.press("z");
    await page.keyboard.up("Control");
    await page.waitForFunction(() => document.getElementById("editor").value === "mine");
  });
});

const allowClipboard = (page, context) =>
  context.overridePermissions(started.url.slice(0, -1), [
    "clipboard-read",
    "clipboard-write",
    "clipboard-sanitized-write",
  ]);

test("the link holds the text, wherever it is opened", async () => {
  const mine = TYPED.replace("typed", "møn-db");
  let link;
  await use({ prepare: allowClipboard }, async (page) => {
    await clear(page);
    await type(page, mine);
    await page.click("#link");
    await page.waitForFunction(() => document.getElementById("copied").textContent === "Link copied");
    link = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(page.url(), link);
    await page.reload();
    await page.waitForSelector("html[data-state=ready]");
    assert.equal(await value(page), mine.trimEnd());
  });
  assert.ok(link.startsWith(`${started.url}#yaml=`));
  await use({ fragment: new URL(link).hash }, async (page) => {
    assert.equal(await value(page), mine.trimEnd());
    await headlineIs(page, "Denied: 1 error");
    // The same page takes another link.
    await page.evaluate((hash) => (location.hash = hash), await encode(TYPED.replace("OrderedReady", "Parallel")));
    await headlineIs(page, "Allowed");
  });
});

test("the address follows the text", async () => {
  await use({}, async (page) => {
    await clear(page);
    await type(page, "kind: StatefulSet");
    await page.waitForFunction((hash) => location.hash === hash, {}, `#${await encode("kind: StatefulSet")}`);
  });
});

test("where nothing can be copied, the page says where the link is", async () => {
  const prepare = (page) =>
    page.evaluateOnNewDocument(() => {
      navigator.clipboard.writeText = () => Promise.reject(new Error("no"));
    });
  await use({ prepare }, async (page) => {
    await page.click("#link");
    await page.waitForFunction(
      () => document.getElementById("copied").textContent === "Copy the link from the address bar",
    );
    assert.match(page.url(), /#yaml=/);
  });
});

test("a broken link shows a message and an example", async () => {
  for (const fragment of ["#yaml=AAAA", "#yaml=%%%", "#other", `#${(await encode(TYPED)).slice(0, -6)}`]) {
    await use({ fragment }, async (page) => {
      assert.match(
        await text(page, "[role=alert]:not([hidden])"),
        /The link cannot be read: .+\. Here is an example instead\./,
      );
      await headlineIs(page, "Allowed");
      await page.click("#notice-close");
      assert.equal(await page.$("#notice:not([hidden])"), null);
      assert.equal(await focused(page), "editor");
    });
  }
});

test("without a mouse, one gets everywhere and sees where one is", async () => {
  await use({}, async (page) => {
    const tab = async () => {
      await page.keyboard.press("Tab");
      const outline = await page.evaluate(() => {
        const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
        const frame = document.activeElement.closest(".write");
        return frame ? getComputedStyle(frame).boxShadow !== "none" : outlineStyle !== "none" && outlineWidth !== "0px";
      });
      assert.ok(outline, `the focus on ${await focused(page)} is seen`);
      return focused(page);
    };
    assert.deepEqual([await tab(), await tab(), await tab(), await tab()], ["examples", "link", "theme", "editor"]);
    await retype(page, "Parallel", "OrderedReady");
    await headlineIs(page, "Denied: 1 error");
    assert.equal(await tab(), "place");
    await page.keyboard.press("Enter");
    assert.equal(await focused(page), "editor");
    assert.equal(
      await page.$eval("#editor", (area) => area.value.slice(area.selectionStart, area.selectionEnd)),
      "gang: {}",
    );
    await retype(page, "OrderedReady", "Parallel");
    await headlineIs(page, "Allowed");
    assert.deepEqual([await tab(), await tab(), await tab(), await tab()], ["quiet", "PRE", "quiet", "PRE"]);

    await page.focus("#examples");
    for (let step = 0; step < 3; step++) await page.keyboard.press("ArrowDown");
    await page.waitForFunction(() => document.getElementById("editor").value.includes("training-shards"));
    assert.equal(await focused(page), "examples");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Space");
    assert.equal(await page.$eval("html", (root) => root.dataset.theme), "dark");
  });
});

test("a screen reader gets the editor with its verdict, the news, and the drawing in words", async () => {
  await use({}, async (page) => {
    const tree = async () => {
      const nodes = [];
      const walk = (node) => (nodes.push(node), (node.children ?? []).forEach(walk));
      walk(await page.accessibility.snapshot({ interestingOnly: false }));
      return nodes;
    };
    await page.waitForFunction(() => document.getElementById("announcement").textContent === "Allowed.");
    const nodes = await tree();
    const editor = nodes.find(({ role, multiline }) => role === "textbox" && multiline);
    assert.equal(editor.name, "StatefulSet");
    assert.match(editor.description, /^Allowed The intent is spec\.scheduling/);
    const drawing = nodes.find(({ role }) => role === "image" || role === "img");
    assert.equal(drawing.name, "The group of cockroachdb: 5 pods");
    assert.match(drawing.description, /^Placed: all 5 pods at once, or none/);

    await retype(page, "Parallel", "OrderedReady");
    await page.waitForFunction(
      (news) => document.querySelector("[aria-live=polite]").textContent === news,
      {},
      `Denied: 1 error. Line 12: ${GANG}`,
    );
    const after = await tree();
    assert.equal(after.find(({ role, multiline }) => role === "textbox" && multiline).invalid, "true");
    assert.ok(after.some(({ role, name }) => role === "button" && /^Error, go to line 12 gang: \{\}/.test(name)));
  });
});

test("an audit finds nothing, light and dark, wide and narrow, allowed and denied", async () => {
  for (const scheme of ["light", "dark"]) {
    for (const width of [360, 1440]) {
      for (const name of ["kep/field/my-db", "refusals/everything-at-once"]) {
        await use({ scheme, width, fragment: `#${await encode(read(name))}` }, async (page) => {
          await page.emulateMediaFeatures([
            { name: "prefers-color-scheme", value: scheme },
            { name: "prefers-reduced-motion", value: "reduce" },
          ]);
          await page.evaluate(axe);
          const { violations } = await page.evaluate(() => globalThis.axe.run());
          const told = violations.map(({ id, nodes }) => [
            id,
            nodes.map(({ html, failureSummary }) => `${html}\n${failureSummary}`),
          ]);
          assert.deepEqual(told, [], `${scheme}, ${width}, ${name}`);
        });
      }
    }
  }
});

test("dark follows the system until it is chosen, and the choice stays", async () => {
  const background = (page) => page.$eval("html", (root) => getComputedStyle(root).backgroundColor);
  await use({ scheme: "dark" }, async (page) => {
    const dark = await background(page);
    assert.equal(await page.$eval("#theme", (button) => button.ariaPressed), "true");
    await page.click("#theme");
    const light = await background(page);
    assert.notEqual(light, dark);
    assert.equal(await page.$eval("#theme", (button) => button.ariaPressed), "false");
    await page.reload();
    await page.waitForSelector("html[data-state=ready]");
    assert.equal(await background(page), light);
  });
  await use({ scheme: "light" }, async (page) => {
    const light = await background(page);
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
    await page.waitForFunction(() => document.getElementById("theme").ariaPressed === "true");
    assert.notEqual(await background(page), light);
  });
});

test("nothing moves for who does not want it", async () => {
  await use({}, async (page) => {
    await page.emulateMediaFeatures([{ name: "prefers-reduced-motion", value: "reduce" }]);
    const moving = await page.$$eval(
      "*",
      (all) => all.filter((one) => getComputedStyle(one).transitionDuration !== "0s").length,
    );
    assert.equal(moving, 0);
  });
});

test("nothing is sent anywhere, and nothing is loaded after the start", async () => {
  await use({}, async (page, { requests }) => {
    // The icon of the tab may come at any time.
    const asked = () => requests.filter((request) => !request.endsWith("/icon.svg"));
    const loaded = asked().length;
    await clear(page);
    await type(page, TYPED);
    await headlineIs(page, "Denied: 1 error");
    await page.select("#examples", "kep/field/my-db");
    await headlineIs(page, "Allowed");
    await page.click("#link");
    await page.waitForFunction(() => document.getElementById("copied").textContent !== "");
    assert.deepEqual(asked().slice(loaded), []);
    assert.ok(
      requests.every((request) => request.startsWith(started.url)),
      requests.join("\n"),
    );
    const policy = await page.$eval("meta[http-equiv=Content-Security-Policy]", (meta) => meta.content);
    assert.match(policy, /default-src 'none'; script-src 'self' 'wasm-unsafe-eval';/);
  });
});

test("it works below any folder of a host", async () => {
  const { server, url } = await serve({ folder: fileURLToPath(new URL("../../dist/", import.meta.url)) });
  const { page, context, complaints } = await open({ ...started, url: `${url}playground/` });
  await headlineIs(page, "Allowed");
  assert.deepEqual(complaints, []);
  await context.close();
  server.closeAllConnections();
  server.close();
});

test("a policy that cannot be loaded is told", async () => {
  const context = await started.browser.createBrowserContext();
  const page = await context.newPage();
  await page.setRequestInterception(true);
  page.on("request", (request) => (request.url().endsWith(".wasm") ? request.abort() : request.continue()));
  await page.goto(started.url);
  await page.waitForSelector("html[data-state=failed]");
  assert.match(await text(page, "#notice"), /The policy could not be loaded/);
  await context.close();
});

test("the coloured text is exactly below the text that is edited", async () => {
  for (const width of [360, 1440]) {
    await use(
      { width, fragment: `#${await encode(`${read("kep/field/my-db")}# ${"long ".repeat(60)}\n`)}` },
      async (page) => {
        const sizes = await page.evaluate(() => {
          const area = document.getElementById("editor");
          const lines = document.querySelectorAll("#editor-copy .line");
          const range = document.createRange();
          range.selectNodeContents(lines[4]);
          const style = getComputedStyle(area);
          return {
            // It never scrolls inside of itself.
            inside: area.scrollHeight <= area.clientHeight && area.scrollWidth <= area.clientWidth,
            left:
              range.getBoundingClientRect().left -
              area.getBoundingClientRect().left -
              Number.parseFloat(style.paddingLeft),
            top:
              lines[4].getBoundingClientRect().top -
              area.getBoundingClientRect().top -
              8 -
              4 * Number.parseFloat(style.lineHeight),
          };
        });
        assert.ok(sizes.inside);
        assert.ok(Math.abs(sizes.left) < 0.6 && Math.abs(sizes.top) < 0.6, JSON.stringify(sizes));
      },
    );
  }
});

test("no page scrolls sideways, and there are screenshots at three widths", async () => {
  mkdirSync(SCREENSHOTS, { recursive: true });
  const shown = { allowed: "kep/field/my-db", denied: "refusals/everything-at-once" };
  for (const [width, height] of [
    [360, 740],
    [800, 1000],
    [1440, 900],
  ]) {
    for (const scheme of ["light", "dark"]) {
      for (const [label, name] of Object.entries(shown)) {
        await use({ width, height, scheme, fragment: `#${await encode(read(name))}` }, async (page) => {
          if (label === "allowed") await page.waitForSelector(".drawing");
          const wide = await page.evaluate(() => document.documentElement.scrollWidth);
          assert.ok(wide <= width, `${wide} of ${width}`);
          await page.screenshot({ path: `${SCREENSHOTS}${width}-${scheme}-${label}.png`, fullPage: true });
        });
      }
    }
  }
  await use({ width: 320 }, async (page) => {
    for (const { id } of examples().flatMap(({ examples }) => examples)) {
      await page.select("#examples", id);
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 320, id);
    }
  });
});
