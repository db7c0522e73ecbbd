// A group as a picture and as words.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as core from "../../dist/npm/node.js";
import { draw } from "../src/drawing.js";
import { judge } from "../src/judge.js";
import { describe, factsOf, groupOf, plain } from "../src/reading.js";
import { names, read } from "./fixtures.mjs";

const group = (text) => groupOf(judge(core, text).sets[0]);
const myDb = read("kep/field/my-db");

/** All elements of a picture, and all of its texts. */
const elements = (tree) => [tree, ...tree.slice(2).filter(Array.isArray).flatMap(elements)];
const texts = (tree) => tree.slice(2).flatMap((child) => (Array.isArray(child) ? texts(child) : [String(child)]));
const ofClass = (tree, name) => elements(tree).filter(([, attributes]) => attributes.class?.split(" ").includes(name));

test("the words tell everything that the group asks for", () => {
  assert.deepEqual(
    factsOf(group(myDb)).map(({ term, text }) => [term, plain(text)]),
    [
      ["Placed", "all 3 pods at once, or none (gang, minCount: 3)"],
      ["Where", "all in one domain of the node label topology.kubernetes.io/zone"],
      ["Preempted", "all together, or not at all"],
      ["Shares", "shared-device, one claim for the group, from the template shared-device-template"],
    ],
  );
  assert.deepEqual(
    factsOf(group(read("kep/field/minimal"))).map(({ text }) => plain(text)),
    ["each pod on its own, as without a group (basic)", "on any nodes", "pod by pod", "no claims"],
  );
});

test("the picture has a name, and says in words what it shows", () => {
  const [name, attributes, title, description] = draw(group(myDb), 600, "g");
  assert.deepEqual([name, attributes.role], ["svg", "img"]);
  assert.deepEqual(
    [title[0], title[1].id, title[2]],
    ["title", attributes["aria-labelledby"], "The group of my-db: 3 pods"],
  );
  assert.deepEqual(
    [description[0], description[1].id, description[2]],
    ["desc", attributes["aria-describedby"], describe(group(myDb))],
  );
});

test("the picture shows pods, gang, domain, claim and what is preempted", () => {
  const tree = draw(group(myDb), 600);
  assert.equal(ofClass(tree, "pod").length, 3);
  assert.deepEqual(texts(ofClass(tree, "pod")[2]), ["my-db-2", "2"]);
  assert.equal(ofClass(tree, "rail").length, 1);
  assert.equal(ofClass(tree, "domain").length, 1);
  assert.equal(ofClass(tree, "claim").length, 1);
  // One around the pods, one that explains it.
  assert.equal(ofClass(tree, "unit").length, 2);
  assert.ok(texts(tree).includes("topology.kubernetes.io/zone"));
  assert.ok(texts(tree).includes("preempted as one"));
});

test("what is not asked for is not drawn", () => {
  const tree = draw(group(read("kep/field/minimal")), 600);
  for (const name of ["rail", "domain", "claim", "wire"]) assert.deepEqual(ofClass(tree, name), [], name);
  assert.equal(ofClass(tree, "pod").length, 2);
  assert.equal(ofClass(tree, "unit").length, 3);
});

test("many pods are counted where they do not fit, and ordinals begin where they are to", () => {
  const many = draw(group(myDb.replace("replicas: 3", "replicas: 1000\n  ordinals: {start: 5}")), 320);
  const pods = ofClass(many, "pod");
  assert.ok(pods.length < 20);
  assert.equal(texts(pods[0]).at(-1), "5");
  assert.equal(texts(pods.at(-1)).at(-1), `+${1000 - pods.length + 1}`);
});

test("a group without pods is drawn as one", () => {
  const tree = draw(group(myDb.replace("replicas: 3", "replicas: 0")), 320);
  assert.deepEqual(ofClass(tree, "pod"), []);
  assert.ok(texts(tree).includes("no pods: scaled to zero"));
});

test("nothing leaves the picture, however narrow it is and however long the names", () => {
  const long = "n".repeat(60);
  const texts = [...names("kep/field").map(read), myDb.replaceAll("shared-device", long).replaceAll("my-db", long)];
  for (const text of texts) {
    for (const width of [240, 288, 320, 620]) {
      const tree = draw(group(text), width);
      const { height } = tree[1];
      for (const [name, { x, y, width: wide = 0, height: high = 0 }, ...children] of elements(tree)) {
        if (x === undefined) continue;
        assert.ok(x >= 0 && x + wide <= width && y + high <= height, `${name} at ${x}, ${y} of ${width}`);
        if (name !== "text") continue;
        const shown = children.flatMap((child) =>
          Array.isArray(child) ? (child[0] === "title" ? [] : child.slice(2)) : [child],
        );
        assert.ok(x + shown.join("").length * 6.5 <= width + 20, `${shown} at ${width}`);
      }
    }
  }
});
