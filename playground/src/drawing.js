// A group as a picture: its pods, the box they are placed in, what is preempted, what they share.
// A picture is a tree, `[element, attributes, ...children]`, and drawn for a width, so that its letters keep
// their size on a small screen.
import { describe, plural } from "./reading.js";

// The side of a pod and the space after it: the largest with which all of them stand in one row.
const SIZES = [
  [54, 26],
  [46, 20],
  [38, 18],
];
const PAD = 18;
const HEAD = 54;
const LINE = 34;
const MAX_ROWS = 3;
// The width of a letter, a little generous.
const MONO = 7.4;
const SANS = 7;

export function draw(group, width, id = "group") {
  const inner = group.domain ? PAD : 0;
  const box = { x: inner + 1, y: group.domain ? 36 : 1, width: width - 2 * inner - 2 };
  const grid = layOut(group, box);
  box.height = HEAD + grid.height + 46;
  const domainHeight = group.domain ? box.y + box.height + PAD : 0;
  const bottom = group.domain ? domainHeight : box.y + box.height;
  const height = bottom + (group.claims.length > 0 ? 14 + group.claims.length * LINE : 0) + 2;
  return [
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "img",
      "aria-labelledby": `${id}-title`,
      "aria-describedby": `${id}-desc`,
      class: "drawing",
    },
    ["title", { id: `${id}-title` }, `The group of ${group.name || "the StatefulSet"}: ${plural(group.pods, "pod")}`],
    ["desc", { id: `${id}-desc` }, describe(group)],
    ...domain(group, width, domainHeight),
    ...claims(group, box, bottom),
    ...frame(group, box),
    ...members(group, grid),
    ...preemption(group, box, grid),
  ];
}

/** Where the pods stand. What does not fit is counted in the last place. */
function layOut({ pods, first }, box) {
  const room = box.width - 2 * PAD - 8;
  const [side, gap] = SIZES.find(([side, gap]) => pods * (side + gap) - gap <= room) ?? SIZES.at(-1);
  const columns = Math.max(1, Math.floor((room + gap) / (side + gap)));
  const shown = Math.min(pods, columns * MAX_ROWS);
  const rows = Math.max(1, Math.ceil(shown / columns));
  const places = Array.from({ length: shown }, (_, index) => ({
    x: box.x + PAD + 4 + (index % columns) * (side + gap),
    y: box.y + HEAD + 10 + Math.floor(index / columns) * (side + gap),
    label: shown < pods && index === shown - 1 ? `+${short(pods - shown + 1)}` : short(first + index),
    more: shown < pods && index === shown - 1,
  }));
  const across = Math.min(shown, columns) * (side + gap) - gap;
  return { places, side, across, height: 10 + rows * (side + gap) - gap };
}

function domain({ domain }, width, height) {
  if (!domain) return [];
  const label = "one domain of ";
  return [
    rect({ x: 1, y: 1, width: width - 2, height: height - 2 }, 14, "domain"),
    [
      "text",
      { x: PAD + 2, y: 24, class: "label" },
      ["title", {}, `All pods in one domain of the node label ${domain}`],
      label,
      ["tspan", { class: "code" }, cut(domain, width - 2 * PAD - label.length * SANS)],
    ],
  ];
}

function frame({ minCount, podGroup }, box) {
  const title = minCount === undefined ? "basic: each pod on its own" : `gang: ${minCount} at once, or none`;
  return [
    rect(box, 10, minCount === undefined ? "box basic" : "box gang"),
    ["text", { x: box.x + PAD, y: box.y + 24, class: "heading" }, title],
    [
      "text",
      { x: box.x + PAD, y: box.y + 42, class: "code quiet" },
      ["title", {}, `PodGroup ${podGroup}`],
      cut(podGroup, box.width - 2 * PAD),
    ],
  ];
}

function members({ pods, name, minCount }, { places, side }) {
  if (pods <= 0) return [];
  return [
    // What is placed at once hangs together.
    ...(minCount === undefined ? [] : [["path", { d: rail(places, side), class: "rail" }]]),
    ...places.map(({ x, y, label, more }) => [
      "g",
      { class: more ? "pod more" : "pod" },
      ["title", {}, more ? `${label.slice(1)} more pods` : `${name}-${label}`],
      rect({ x, y, width: side, height: side }, 8),
      ["text", { x: x + side / 2, y: y + side / 2 + 5, "text-anchor": "middle" }, label],
    ]),
  ];
}

/** A line through each row, and one that holds the rows. */
function rail(places, side) {
  const middle = places.map(({ x, y }) => ({ x: x + side / 2, y: y + side / 2 }));
  const { x, y } = middle[0];
  const across = middle.map((pod) => (pod.x === x ? `M${x} ${pod.y}` : `H${pod.x}`));
  return `${across.join("")}M${x} ${y}V${middle.at(-1).y}`;
}

function preemption({ together, pods }, box, { places, side, across, height }) {
  const bottom = box.y + HEAD + height + 32;
  const units =
    pods <= 0
      ? []
      : together
        ? [{ x: places[0].x, y: places[0].y, width: across, height: height - 10 }]
        : places.map(({ x, y }) => ({ x, y, width: side, height: side }));
  const label = pods <= 0 ? "no pods: scaled to zero" : together ? "preempted as one" : "preempted pod by pod";
  return [
    ...units.map((unit) => rect(grow(unit, together ? 8 : 5), together ? 14 : 12, "unit")),
    ...(pods > 0 ? [rect({ x: box.x + PAD, y: bottom - 10, width: 18, height: 12 }, 4, "unit")] : []),
    ["text", { x: box.x + PAD + (pods > 0 ? 26 : 0), y: bottom, class: "label" }, label],
  ];
}

function claims({ claims }, box, bottom) {
  const trunk = box.x + PAD + 9;
  const top = box.y + box.height;
  return claims.flatMap(({ name, source, fromTemplate }, index) => {
    const middle = bottom + 14 + index * LINE + LINE / 2 - 4;
    const from = fromTemplate ? "from template " : "existing claim ";
    const room = box.x + box.width - trunk - 60;
    const shown = cut(name, Math.min(room / 2, (name.length + 1) * MONO));
    const left = room - shown.length * MONO - (from.length + 2) * SANS;
    return [
      ["polyline", { points: `${trunk},${top} ${trunk},${middle} ${trunk + 22},${middle}`, class: "wire" }],
      [
        "g",
        { class: "claim" },
        ["title", {}, `Claim ${name}, ${from}${source}: allocated once, for the whole group`],
        ["path", { d: `M${trunk + 22} ${middle}l9 -9 9 9 -9 9z` }],
        [
          "text",
          { x: trunk + 48, y: middle + 5, class: "label" },
          ["tspan", { class: "code" }, shown],
          // A narrow picture names the claim only; the words beside it tell the rest.
          ...(left > 5 * MONO
            ? [
                ["tspan", { class: "quiet", dx: 8 }, from],
                ["tspan", { class: "code quiet" }, cut(source, left)],
              ]
            : []),
        ],
      ],
    ];
  });
}

function rect({ x, y, width, height }, rx, name) {
  return ["rect", { x, y, width, height, rx, ...(name && { class: name }) }];
}

function grow({ x, y, width, height }, by) {
  return { x: x - by, y: y - by, width: width + 2 * by, height: height + 2 * by };
}

/** A number in at most four characters, more or less. */
function short(number) {
  return number < 10_000 ? String(number) : number < 10_000_000 ? `${Math.floor(number / 1000)}k` : "many";
}

/** A text in code letters, as far as there is room; the end of a name tells more than its middle. */
function cut(text, room) {
  const count = Math.max(4, Math.floor(room / MONO));
  if (text.length <= count) return text;
  const tail = Math.floor((count - 1) / 2);
  return `${text.slice(0, count - 1 - tail)}…${text.slice(text.length - tail)}`;
}
