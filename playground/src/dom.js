// Elements from trees. Texts become text nodes, never markup.

import { tokens } from "./highlight.js";

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** An HTML element; attributes that are functions listen, those that are undefined or false are left out. */
export function html(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** An SVG element of a tree `[name, attributes, ...children]`. */
export function svg([name, attributes, ...children]) {
  const made = children.map((child) => (Array.isArray(child) ? svg(child) : child));
  return fill(document.createElementNS(SVG, name), attributes, made);
}

/** The content of a line of YAML, coloured. */
export function coloured(line) {
  return tokens(line).map(([kind, text]) => (kind === "text" ? text : html("span", { class: `t-${kind}` }, text)));
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== false));
  return element;
}
