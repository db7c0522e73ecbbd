// What an editor's text holds: documents, their objects, and where each stands.
import { isMap, isSeq, parseAllDocuments } from "yaml";

// Kubernetes' parsers know the merge key, and refuse a key that is there twice.
const OPTIONS = { merge: true, prettyErrors: false, logLevel: "silent" };

/**
 * Reads a text into `objects` (each with its `value`, and its `node` in a `document`, by which a field is
 * located) and `problems`, places where it is not YAML.
 */
export function parse(text) {
  const objects = [];
  const problems = [];
  for (const document of parseAllDocuments(text, OPTIONS)) {
    if (document.errors.length > 0) {
      problems.push(...document.errors.map(({ message, pos: [start, end] }) => ({ message, start, end })));
      continue;
    }
    try {
      objects.push(...objectsOf(document));
    } catch (error) {
      // Aliases of aliases, of which a small text could make a large object.
      const [start, end] = document.range;
      problems.push({ message: error.message, start, end });
    }
  }
  return { objects, problems };
}

function objectsOf(document) {
  const root = document.contents;
  if (!isMap(root)) return root === null ? [] : [{ document, node: root, value: root.toJS(document) }];
  const items = root.get("items");
  const nodes = root.get("kind") === "List" && isSeq(items) ? items.items : [root];
  return nodes.map((node) => ({ document, node, value: node.toJS(document) }));
}
