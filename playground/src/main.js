// The page: what the editor holds is judged, shown and kept in the address.
import init, { compile, review } from "../../dist/npm/index.js";
import module from "../../dist/npm/core_bg.wasm";
import groups from "examples";
import { copy } from "./clipboard.js";
import { byId, html } from "./dom.js";
import { createEditor } from "./editor.js";
import { groupElement } from "./groups.js";
import { judge } from "./judge.js";
import { decode, encode } from "./link.js";
import { announcement, explain, findingElement, findings, headline, icon } from "./verdict.js";

// Not while somebody types: a screen reader would never come to an end.
const PAUSE = 500;

const core = { compile, review };
const editor = createEditor({ onInput: update });
const examples = groups.flatMap(({ examples }) => examples);
let announcing;
let saving;

function update() {
  show();
  clearTimeout(saving);
  saving = setTimeout(save, PAUSE);
}

function show() {
  const judgement = judge(core, editor.text);
  const found = findings(judgement);
  const { kind, text } = headline(judgement);
  const verdict = byId("verdict");
  verdict.dataset.kind = kind;
  byId("verdict-icon").replaceChildren(icon(kind));
  byId("verdict-headline").textContent = text;
  byId("verdict-about").textContent = explain(judgement);
  byId("findings").replaceChildren(...found.map((finding) => findingElement(finding, editor.select)));
  const changes = judgement.sets.flatMap(({ changes }) => changes);
  byId("changes").replaceChildren(...changes.map(changeElement));
  byId("changes-frame").hidden = changes.length === 0;

  // So that an example that was changed can be chosen again.
  byId("examples").value = examples.find(({ text }) => text === editor.text)?.id ?? "";

  const marks = new Map();
  for (const { line, kind } of found) if (marks.get(line) !== "error") marks.set(line, kind);
  editor.mark(marks);

  const compiled = judgement.sets.filter(({ compiled }) => compiled);
  byId("groups").replaceChildren(...compiled.map((set, index) => groupElement(set, index, copyObject)));
  document.documentElement.dataset.state = "ready";

  clearTimeout(announcing);
  announcing = setTimeout(() => (byId("announcement").textContent = announcement(judgement)), PAUSE);
}

function changeElement({ op, path, value }) {
  return html("li", {}, `${op} `, html("code", {}, value === undefined ? path : `${path}: ${JSON.stringify(value)}`));
}

async function save() {
  const text = editor.text;
  const fragment = await encode(text);
  // Meanwhile there may be another one.
  if (text === editor.text) history.replaceState(null, "", `#${fragment}`);
}

/** Shows what the address holds; false if that is nothing, or broken. */
async function load() {
  try {
    const text = await decode(location.hash);
    tell("");
    if (text === undefined) return false;
    editor.replace(text);
    show();
    return true;
  } catch (error) {
    tell(`The link cannot be read: ${error.message}. Here is an example instead.`);
    return false;
  }
}

function tell(message) {
  byId("notice-text").textContent = message;
  byId("notice").hidden = message === "";
}

function say(message) {
  byId("copied").textContent = message;
}

async function copyLink() {
  const link = new URL(`#${await encode(editor.text)}`, location.href).href;
  history.replaceState(null, "", link);
  say((await copy(link)) ? "Link copied" : "Copy the link from the address bar");
}

async function copyObject(text, kind) {
  say((await copy(text)) ? `${kind} copied` : "The browser does not let it be copied");
}

function fillExamples(select) {
  for (const { title, examples } of groups) {
    const options = examples.map(({ id, title }) => html("option", { value: id }, title));
    select.append(html("optgroup", { label: title }, ...options));
  }
  select.addEventListener("change", () => {
    const example = examples.find(({ id }) => id === select.value);
    if (!example) return show();
    editor.replace(example.text);
    // The choice goes on: the keyboard stays where it was.
    select.focus({ preventScroll: true });
    update();
  });
}

function toggleTheme() {
  const root = document.documentElement;
  const theme = isDark() ? "light" : "dark";
  root.dataset.theme = theme;
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // Then it holds until the page is left.
  }
  showTheme();
}

function isDark() {
  return (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
}

function showTheme() {
  byId("theme").setAttribute("aria-pressed", String(isDark()));
}

const dark = matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", showTheme);
byId("theme").addEventListener("click", toggleTheme);
byId("link").addEventListener("click", copyLink);
byId("notice-close").addEventListener("click", () => {
  tell("");
  byId("editor").focus();
});
addEventListener("hashchange", load);
showTheme();
fillExamples(byId("examples"));

try {
  await init(new URL(module, import.meta.url));
  if (!(await load())) {
    editor.replace(examples[0].text);
    show();
  }
} catch (error) {
  tell(`The policy could not be loaded: ${error.message}`);
  document.documentElement.dataset.state = "failed";
}
