// Checks the documentation against the code, and that its links lead somewhere.
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { controllerMetrics, series, webhookMetrics } from './metrics.mjs';
import { Checks, root } from './tools.mjs';

const read = (path) => readFileSync(join(root, path), 'utf8');

function files(folder, ending) {
  return readdirSync(join(root, folder), { recursive: true })
    .map((name) => join(folder, name))
    .filter((path) => path.endsWith(ending) && !path.includes('node_modules') && statSync(join(root, path)).isFile())
    .sort();
}

const pages = [...files('docs', '.md'), ...files('deploy', '.md'), 'README.md'];
const withoutCode = (text) => text.replace(/^```[^]*?^```/gm, '').replace(/`[^`\n]*`/g, '');

/** The anchors of a page, as GitHub makes them of its headings. */
function anchors(text) {
  const seen = new Map();
  return text
    .replace(/^```[^]*?^```/gm, '')
    .split('\n')
    .filter((line) => /^#{1,6} /.test(line))
    .map((line) => {
      const plain = line.replace(/^#+ /, '').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '');
      const slug = plain.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '').trim().replace(/\s/g, '-');
      const times = seen.get(slug) ?? 0;
      seen.set(slug, times + 1);
      return times === 0 ? slug : `${slug}-${times}`;
    });
}

function links(page) {
  const text = withoutCode(read(page));
  return [...text.matchAll(/\[[^\]]*\]\(([^)\s]+)\)/g)].map(([, target]) => target).filter((target) => !/^[a-z]+:/.test(target));
}

/** The text of the code without its tests, with its continued lines joined and what is filled in marked. */
function messages() {
  const sources = ['core/src', 'controller/src', 'policy/src'].flatMap((folder) => files(folder, '.rs'));
  return sources
    .filter((path) => !path.endsWith('tests.rs'))
    .map((path) => read(path).split('#[cfg(test)]')[0].replace(/\\\n\s*/g, '').replace(/\{[^{}\n]*\}/g, '…'))
    .join('\n');
}

const checks = new Checks();

checks.check('every relative link leads to a file, and every anchor to a heading', () =>
  pages.flatMap((page) =>
    links(page).flatMap((target) => {
      const [path, anchor] = target.split('#');
      const file = path === '' ? page : relative(root, resolve(root, dirname(page), path));
      if (!existsSync(join(root, file))) return [`${page}: ${target} is not there`];
      if (anchor === undefined) return [];
      return anchors(read(file)).includes(anchor) ? [] : [`${page}: ${target} has no such heading`];
    })));

checks.check('every page is in the index, and every decision in its own', () => {
  const index = links('docs/README.md').map((target) => join('docs', target.split('#')[0]));
  const decisions = links('docs/adr/README.md').map((target) => join('docs/adr', target));
  const listed = new Set([...index, ...decisions, 'docs/README.md']);
  const titles = read('docs/adr/README.md');
  return [
    ...files('docs', '.md').filter((page) => !listed.has(page)).map((page) => `${page} is in no index`),
    ...files('docs/adr', '.md')
      .filter((page) => /\/\d{4}-/.test(page))
      .filter((page) => {
        const [, number, title] = read(page).match(/^# (\d+)\. (.*)/) ?? [];
        return Number(number) !== Number(page.match(/\/(\d{4})-/)[1]) || !titles.includes(`[${title}]`);
      })
      .map((page) => `${page} has another number or title than the index`),
  ];
});

checks.check('every reason of an event has a heading in Troubleshooting, and every such heading is a reason', () => {
  const source = read('core/src/plan/decision.rs');
  const reasons = [...source.matchAll(/Self::\w+ => "(\w+)"/g)].map(([, reason]) => reason);
  const text = read('docs/troubleshooting.md');
  const [, section] = text.match(/^## By event\n([^]*?)^## /m);
  const headings = [...section.matchAll(/^### (\w+)$/gm)].map(([, heading]) => heading);
  return [
    ...(reasons.length > 0 ? [] : ['no reason was found']),
    ...reasons.filter((reason) => !headings.includes(reason)).map((reason) => `${reason} is not told`),
    ...headings.filter((heading) => !reasons.includes(heading)).map((heading) => `${heading} is no reason`),
    ...reasons.filter((reason) => !read('README.md').includes(`\`${reason}\``)).map((reason) => `README.md does not tell ${reason}`),
  ];
});

checks.check('the reasons that fall back are those of the plan', () => {
  const plan = read('core/src/plan/mod.rs').split('#[cfg(test)]')[0];
  const reasons = new Set([...plan.matchAll(/fall_back\(\s*Reason::(\w+)/g)].map(([, reason]) => reason));
  const [, section] = read('docs/concepts.md').match(/^## Fallback\n([^]*?)^## /m);
  const told = new Set([...section.matchAll(/`([A-Z]\w+)`/g)].map(([, reason]) => reason));
  return [...reasons].filter((reason) => !told.has(reason)).concat([...told].filter((reason) => !reasons.has(reason)))
    .map((reason) => `${reason} is told or falls back, not both`);
});

checks.check('Metrics has every metric with its type, labels and unit', () => {
  const text = read('docs/metrics.md');
  return [...controllerMetrics(), ...webhookMetrics()].flatMap(({ name, type, labels, unit }) => {
    const row = text.split('\n').find((line) => line.startsWith(`| \`${name}\` |`));
    if (!row) return [`${name} is not told`];
    const [, , itsType, itsLabels, itsUnit] = row.split('|').map((cell) => cell.trim());
    return [
      ...(itsType === type ? [] : [`${name} is a ${type}, not a ${itsType}`]),
      ...labels.filter((label) => !itsLabels.includes(`\`${label}\``)).map((label) => `${name} has the label ${label}`),
      ...(unit && itsUnit !== unit ? [`${name} has the unit ${unit}`] : []),
    ];
  });
});

checks.check('every metric that any page names is there', () => {
  const known = new Set([...series().keys(), ...[...controllerMetrics(), ...webhookMetrics()].map(({ name }) => name)]);
  for (const name of [...known]) if (name.endsWith('_bucket')) known.add(name.slice(0, -'_bucket'.length));
  return pages.flatMap((page) =>
    [...read(page).matchAll(/\b(?:statefulset_(?:workload|scheduling)|scheduler_podgroup)_\w+/g)]
      .map(([name]) => name)
      .filter((name) => !known.has(name) && !/^statefulset_scheduling_controller/.test(name))
      .map((name) => `${page}: there is no metric ${name}`));
});

checks.check('every alert is told', () => {
  const rules = read('deploy/chart/templates/prometheusrule.yaml');
  const alerts = new Set([...rules.matchAll(/alert: (\w+)/g)].map(([, alert]) => alert));
  return [...alerts].filter((alert) => !read('docs/metrics.md').includes(`\`${alert}\``)).map((alert) => `${alert} is not told`);
});

checks.check('every message that is quoted is one of the code', () => {
  const said = messages();
  const quoted = [...read('docs/troubleshooting.md').matchAll(/^```text\n([^]*?)^```/gm)].flatMap(([, block]) => block.trim().split('\n'));
  // What is waited for is filled in after "waits for".
  const pieces = quoted.flatMap((line) => line.split(/…|(?<=waits for )/).map((piece) => piece.trim())).filter((piece) => piece.length > 3);
  return [
    ...(quoted.length > 5 ? [] : ['hardly any message is quoted']),
    ...pieces.filter((piece) => !said.includes(piece)).map((piece) => `nothing says: ${piece}`),
  ];
});

checks.check('every value of the chart that a page names is there', () => {
  const values = parse(read('deploy/chart/values.yaml'));
  const has = (path) => path.split('.').reduce((value, key) => (value && typeof value === 'object' ? value[key] : undefined), values) !== undefined;
  const tops = Object.keys(values).join('|');
  const path = new RegExp('`((?:' + tops + ')(?:\\.[A-Za-z]+)+)(?::[^`]*)?`', 'g');
  const ignored = /\.(wasm|md|yaml)$/;
  const told = read('deploy/chart/README.md');
  return [
    ...pages.flatMap((page) =>
      [...read(page).matchAll(path)].map(([, name]) => name).filter((name) => !ignored.test(name) && !has(name)).map((name) => `${page}: there is no value ${name}`)),
    ...Object.keys(values).filter((name) => !told.includes(`\`${name}`)).map((name) => `deploy/chart/README.md does not tell ${name}`),
  ];
});

checks.check('every story shows the manifest that is in its file', () =>
  files('docs/stories', '.md').flatMap((page) => {
    const manifest = read(page.replace(/\.md$/, '.yaml'));
    const documents = parseAllDocuments(manifest);
    const [, shown] = read(page).match(/^```yaml\n([^]*?)^```/m) ?? [];
    return [
      ...documents.flatMap((document) => document.errors.map((error) => `${page}: ${error.message}`)),
      ...(documents.some((document) => document.get('kind') === 'StatefulSet') ? [] : [`${page}: has no StatefulSet`]),
      ...(manifest.replace(/^#.*\n/, '') === shown ? [] : [`${page} shows something else than its file`]),
    ];
  }));

checks.check('every story of the KEP has a page', () =>
  [1, 2, 3, 4].filter((number) => !files('docs/stories', '.md').some((page) => page.startsWith(`docs/stories/${number}-`))).map(String));

checks.check('pictures have a title and a description, and are shown', () =>
  files('docs', '.svg').flatMap((picture) => {
    const text = read(picture);
    const shown = pages.some((page) => links(page).some((target) => join(dirname(page), target) === picture));
    return [
      ...(/<title id="\w+">[^<]+<\/title>/.test(text) && /<desc id="\w+">[^<]+<\/desc>/.test(text) ? [] : [`${picture} has no title or no desc`]),
      ...(text.includes('prefers-color-scheme: dark') ? [] : [`${picture} knows no dark page`]),
      ...(shown ? [] : [`no page shows ${picture}`]),
    ];
  }));

checks.check('no line of the documentation is longer than 130 characters, tables, pictures and what is generated aside', () =>
  files('docs', '.md').flatMap((page) =>
    read(page)
      .split('\n')
      .map((line, index) => [index + 1, line])
      .filter(([, line]) => line.length > 130 && !/^[|!]|jq -r/.test(line))
      .map(([number]) => `${page}:${number}`)));

checks.end();
