// The metrics that there are: the controller's and the webhook's, read from their source, and the scheduler's that the
// KEP names.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parser } from '@prometheus-io/lezer-promql';
import { root } from './tools.mjs';

/** The scheduler's metrics of KEP-4671. */
const SCHEDULER = [
  { name: 'scheduler_podgroup_schedule_attempts_total', type: 'counter', labels: ['result'] },
  { name: 'scheduler_podgroup_scheduling_attempt_duration_seconds', type: 'histogram', labels: [] },
];

const source = (path) => readFileSync(join(root, path), 'utf8').split('#[cfg(test)]')[0];

/** The metrics of a source: name as it is printed, type, labels, and the text of its help. */
function metricsOf(text) {
  const aliases = new Map([...text.matchAll(/^type (\w+) = ([\w<>, ]+);/gm)].map(([, name, type]) => [name, type]));
  const labels = new Map();
  for (const [, name, body] of text.matchAll(/EncodeLabelSet\)\]\s*struct (\w+) \{([^}]*)\}/g)) {
    labels.set(name, [...body.matchAll(/^\s*(\w+): /gm)].map(([, label]) => label));
  }
  const fields = new Map();
  const [, struct] = text.match(/pub struct Metrics \{([^}]*)\}/);
  for (const [, field, type] of struct.matchAll(/(\w+): ([\w<>, ]+),\n/g)) fields.set(field, aliases.get(type) ?? type);
  const metrics = [];
  let prefix = '';
  const statement =
    /sub_registry_with_prefix\("(\w+)"\)|\.register(_with_unit)?\(\s*"(\w+)",\s*"([^"]*)",\s*(?:Unit::(\w+),\s*)?(?:self\.)?(\w+)\.clone\(\)/g;
  for (const [, newPrefix, , name, help, unit, field] of text.matchAll(statement)) {
    if (newPrefix) {
      prefix = newPrefix;
      continue;
    }
    const [, family, inner] = fields.get(field).match(/^(?:Family<(\w+), )?(\w+)/);
    const type = inner.toLowerCase();
    const full = `${prefix}_${name}${unit ? `_${unit.toLowerCase()}` : ''}${type === 'counter' ? '_total' : ''}`;
    metrics.push({ name: full, type, labels: labels.get(family) ?? [], unit: unit?.toLowerCase(), help });
  }
  const registered = [...text.matchAll(/\.register\w*\(\s*"/g)].length;
  if (registered !== metrics.length) throw new Error(`${metrics.length} of ${registered} metrics can be read`);
  return metrics;
}

export const controllerMetrics = () => metricsOf(source('controller/src/metrics.rs'));
export const webhookMetrics = () => metricsOf(source('controller/src/webhook/metrics.rs'));

/** The texts in the webhook's code, among which are all that its labels can be. */
export function webhookTexts() {
  const folder = 'controller/src/webhook';
  const sources = readdirSync(join(root, folder)).filter((file) => file.endsWith('.rs')).map((file) => source(join(folder, file)));
  return new Set(sources.flatMap((text) => [...text.matchAll(/"(\w+)"/g)].map(([, word]) => word)));
}

/** Every time series that a query may name, with its labels. */
export function series() {
  const all = new Map();
  for (const { name, type, labels } of [...controllerMetrics(), ...webhookMetrics(), ...SCHEDULER]) {
    if (type === 'histogram') {
      all.set(`${name}_bucket`, [...labels, 'le']);
      for (const suffix of ['_sum', '_count']) all.set(name + suffix, labels);
    } else {
      all.set(name, labels);
    }
  }
  return all;
}

/** What is wrong with a query: its syntax, the metrics it names, their labels, and what the webhook's labels are to be. */
export function queryProblems(query, known = series(), texts = webhookTexts()) {
  // Grafana's own variables stand for durations.
  const text = query.replaceAll('$__rate_interval', '5m');
  const problems = [];
  const named = new Set();
  const values = new Set();
  const labels = new Set();
  parser.parse(text).iterate({
    enter(node) {
      const of = () => text.slice(node.from, node.to);
      if (node.type.isError) problems.push(`syntax error at ${node.from}: ${text}`);
      else if (node.name === 'Identifier' && node.node.parent?.name === 'VectorSelector') named.add(of());
      else if (node.name === 'LabelName') labels.add(of());
      else if (node.name === 'StringLiteral' && node.node.parent?.parent?.parent?.name === 'VectorSelector') {
        const metric = node.node.parent.parent.parent.getChild('Identifier');
        if (!metric || !text.slice(metric.from, metric.to).startsWith('statefulset_scheduling_webhook_')) return;
        for (const value of of().slice(1, -1).split('|')) values.add(value);
      }
    },
  });
  if (named.size === 0) problems.push(`names no metric: ${text}`);
  const allowed = new Set();
  for (const name of named) {
    if (known.has(name)) for (const label of known.get(name)) allowed.add(label);
    else problems.push(`there is no metric ${name}`);
  }
  for (const label of labels) if (!allowed.has(label)) problems.push(`no metric of ${text} has a label ${label}`);
  for (const value of values) if (!texts.has(value)) problems.push(`no label of the webhook is ever ${value}`);
  return problems;
}
