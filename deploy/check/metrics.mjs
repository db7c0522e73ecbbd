// The metrics that there are: the controller's, read from its source, and the scheduler's that the KEP names.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parser } from '@prometheus-io/lezer-promql';
import { root } from './tools.mjs';

/** The scheduler's metrics of KEP-4671. */
const SCHEDULER = [
  { name: 'scheduler_podgroup_schedule_attempts_total', type: 'counter', labels: ['result'] },
  { name: 'scheduler_podgroup_scheduling_attempt_duration_seconds', type: 'histogram', labels: [] },
];

/** The controller's metrics: name as it is printed, type, labels, and the text of its help. */
export function controllerMetrics(source = readFileSync(join(root, 'controller/src/metrics.rs'), 'utf8')) {
  const labels = new Map();
  for (const [, name, body] of source.matchAll(/EncodeLabelSet\)\]\s*struct (\w+) \{([^}]*)\}/g)) {
    labels.set(name, [...body.matchAll(/^\s*(\w+): /gm)].map(([, label]) => label));
  }
  const fields = new Map();
  const [, struct] = source.match(/pub struct Metrics \{([^}]*)\}/);
  for (const [, field, type] of struct.matchAll(/(\w+): ([\w<>, ]+),\n/g)) fields.set(field, type);
  const metrics = [];
  let prefix = '';
  const statement =
    /sub_registry_with_prefix\("(\w+)"\)|registry\s*\.register(_with_unit)?\(\s*"(\w+)",\s*"([^"]*)",\s*(?:Unit::(\w+),\s*)?self\.(\w+)\.clone\(\)/g;
  for (const [, newPrefix, , name, help, unit, field] of source.matchAll(statement)) {
    if (newPrefix) {
      prefix = newPrefix;
      continue;
    }
    const [, family, inner] = fields.get(field).match(/^(?:Family<(\w+), )?(\w+)/);
    const type = inner.toLowerCase();
    const full = `${prefix}_${name}${unit ? `_${unit.toLowerCase()}` : ''}${type === 'counter' ? '_total' : ''}`;
    metrics.push({ name: full, type, labels: labels.get(family) ?? [], unit: unit?.toLowerCase(), help });
  }
  return metrics;
}

/** Every time series that a query may name, with its labels. */
export function series() {
  const all = new Map();
  for (const { name, type, labels } of [...controllerMetrics(), ...SCHEDULER]) {
    if (type === 'histogram') {
      all.set(`${name}_bucket`, [...labels, 'le']);
      for (const suffix of ['_sum', '_count']) all.set(name + suffix, labels);
    } else {
      all.set(name, labels);
    }
  }
  return all;
}

/** What is wrong with a query: its syntax, the metrics it names, their labels. */
export function queryProblems(query, known = series()) {
  // Grafana's own variables stand for durations.
  const text = query.replaceAll('$__rate_interval', '5m');
  const problems = [];
  const named = new Set();
  const labels = new Set();
  parser.parse(text).iterate({
    enter(node) {
      const of = () => text.slice(node.from, node.to);
      if (node.type.isError) problems.push(`syntax error at ${node.from}: ${text}`);
      else if (node.name === 'Identifier' && node.node.parent?.name === 'VectorSelector') named.add(of());
      else if (node.name === 'LabelName') labels.add(of());
    },
  });
  if (named.size === 0) problems.push(`names no metric: ${text}`);
  const allowed = new Set();
  for (const name of named) {
    if (known.has(name)) for (const label of known.get(name)) allowed.add(label);
    else problems.push(`there is no metric ${name}`);
  }
  for (const label of labels) if (!allowed.has(label)) problems.push(`no metric of ${text} has a label ${label}`);
  return problems;
}
