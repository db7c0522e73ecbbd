// Renders the chart and the kustomizations and compares them, and judges what is rendered.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { parse, parseAllDocuments } from 'yaml';
import * as apps from 'kubernetes-models/apps/v1';
import * as core from 'kubernetes-models/v1';
import * as networking from 'kubernetes-models/networking.k8s.io/v1';
import * as policy from 'kubernetes-models/policy/v1';
import * as rbac from 'kubernetes-models/rbac.authorization.k8s.io/v1';
import * as monitoring from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';
import { queryProblems, series } from './metrics.mjs';
import { Checks, helm, kubectl, root } from './tools.mjs';

const NAMESPACE = 'statefulset-scheduling-system';
const CHART = join(root, 'deploy/chart');
/** Helm's own labels: they are on what the chart renders and on nothing else. */
const HELM_LABELS = ['helm.sh/chart', 'app.kubernetes.io/instance', 'app.kubernetes.io/version', 'app.kubernetes.io/managed-by'];

const read = (path) => readFileSync(join(root, path), 'utf8');

function objects(text) {
  return parseAllDocuments(text)
    .map((document) => {
      if (document.errors.length > 0) throw document.errors[0];
      return document.toJS();
    })
    .filter((object) => object !== null);
}

/** What the chart renders with these values, by their paths. */
function render(values = {}, namespace = NAMESPACE) {
  const set = Object.entries(values).flatMap(([key, value]) => ['--set-json', `${key}=${JSON.stringify(value)}`]);
  const text = helm('template', 'statefulset-scheduling', CHART, '-n', namespace, '--kube-version', '1.37.0', ...set);
  return objects(text);
}

const nameOf = (object) =>
  [object.apiVersion, object.kind, object.metadata.namespace, object.metadata.name].filter(Boolean).join(' ');
const find = (all, kind, name) => {
  const found = all.find((object) => object.kind === kind && (name === undefined || object.metadata.name === name));
  if (!found) throw new Error(`there is no ${kind} ${name ?? ''}`);
  return found;
};
const policies = (all) => all.filter((object) => object.kind === 'ClusterAdmissionPolicy');
const container = (all) => find(all, 'Deployment').spec.template.spec.containers[0];

function withoutHelmLabels(object) {
  const copy = structuredClone(object);
  for (const label of HELM_LABELS) delete copy.metadata.labels?.[label];
  if (copy.metadata.labels && Object.keys(copy.metadata.labels).length === 0) delete copy.metadata.labels;
  return copy;
}

function differences(path, left, right) {
  if (isDeepStrictEqual(left, right)) return [];
  const plain = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);
  if (plain(left) && plain(right)) {
    const keys = new Set([...Object.keys(left), ...Object.keys(right)]);
    return [...keys].flatMap((key) => differences(`${path}.${key}`, left[key], right[key]));
  }
  return [`${path}: chart ${JSON.stringify(left)}, kustomize ${JSON.stringify(right)}`];
}

function compare(chart, kustomize) {
  const byName = (all) => new Map(all.map((object) => [nameOf(object), object]));
  const [left, right] = [byName(chart.map(withoutHelmLabels)), byName(kustomize)];
  const problems = [];
  for (const name of new Set([...left.keys(), ...right.keys()])) {
    if (!left.has(name)) problems.push(`only kustomize has ${name}`);
    else if (!right.has(name)) problems.push(`only the chart has ${name}`);
    else problems.push(...differences(name, left.get(name), right.get(name)));
  }
  return problems;
}

/** The kinds that may be rendered, and their models. */
const MODELS = {
  'v1 Namespace': core.Namespace,
  'v1 ServiceAccount': core.ServiceAccount,
  'v1 Service': core.Service,
  'v1 ConfigMap': core.ConfigMap,
  'apps/v1 Deployment': apps.Deployment,
  'policy/v1 PodDisruptionBudget': policy.PodDisruptionBudget,
  'networking.k8s.io/v1 NetworkPolicy': networking.NetworkPolicy,
  'rbac.authorization.k8s.io/v1 ClusterRole': rbac.ClusterRole,
  'rbac.authorization.k8s.io/v1 ClusterRoleBinding': rbac.ClusterRoleBinding,
  'rbac.authorization.k8s.io/v1 Role': rbac.Role,
  'rbac.authorization.k8s.io/v1 RoleBinding': rbac.RoleBinding,
  'monitoring.coreos.com/v1 ServiceMonitor': monitoring.ServiceMonitor,
  'monitoring.coreos.com/v1 PrometheusRule': monitoring.PrometheusRule,
};
const CLUSTER_SCOPED = new Set(['Namespace', 'ClusterRole', 'ClusterRoleBinding', 'ClusterAdmissionPolicy']);
/** The fields of a ClusterAdmissionPolicy, and how each is to be. */
const POLICY = {
  policyServer: (value) => typeof value === 'string' && value !== '',
  module: (value) => /^(registry|https?|file):\/\/\S+$/.test(value),
  mode: (value) => value === 'protect',
  mutating: (value) => typeof value === 'boolean',
  failurePolicy: (value) => ['Fail', 'Ignore'].includes(value),
  timeoutSeconds: (value) => Number.isInteger(value) && value >= 2 && value <= 30,
  rules: (value) =>
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((rule) => ['apiGroups', 'apiVersions', 'resources', 'operations'].every((key) => rule[key]?.length > 0)),
  settings: (value) => value !== null && typeof value === 'object',
};
const OPTIONAL = ['namespaceSelector', 'objectSelector', 'matchConditions', 'contextAwareResources'];

function policyProblems(object) {
  const problems = [];
  for (const [field, judge] of Object.entries(POLICY)) {
    if (!judge(object.spec?.[field])) problems.push(`spec.${field} is ${JSON.stringify(object.spec?.[field])}`);
  }
  for (const field of Object.keys(object.spec ?? {})) {
    if (!(field in POLICY) && !OPTIONAL.includes(field)) problems.push(`spec.${field} is unknown`);
  }
  return problems;
}

/** What is wrong with an object: its kind, its name, its namespace, its fields. */
function objectProblems(object) {
  const kind = `${object.apiVersion} ${object.kind}`;
  const problems = [];
  if (!object.metadata?.name) problems.push('has no name');
  const namespaced = !CLUSTER_SCOPED.has(object.kind);
  if (namespaced !== Boolean(object.metadata?.namespace)) {
    problems.push(namespaced ? 'has no namespace' : 'has a namespace, and is of the cluster');
  }
  for (const [label, value] of Object.entries(object.metadata?.labels ?? {})) {
    if (typeof value !== 'string') problems.push(`the label ${label} is no text`);
  }
  if (kind === 'policies.kubewarden.io/v1 ClusterAdmissionPolicy') {
    problems.push(...policyProblems(object));
  } else if (MODELS[kind]) {
    try {
      new MODELS[kind](object).validate();
    } catch (error) {
      problems.push(error.message);
    }
  } else {
    problems.push('is of a kind that nothing here knows');
  }
  return problems.map((problem) => `${nameOf(object)} ${problem}`);
}

const validate = (all) => all.flatMap(objectProblems);

/** The alerts and panels, with their queries. */
function queries(all) {
  const rules = all.filter((object) => object.kind === 'PrometheusRule').flatMap((object) => object.spec.groups);
  const alerts = rules.flatMap((group) => group.rules).map((rule) => [`alert ${rule.alert}`, rule.expr]);
  const boards = all
    .filter((object) => object.kind === 'ConfigMap')
    .flatMap((object) => Object.values(object.data))
    .map((text) => JSON.parse(text));
  const panels = boards.flatMap((board) =>
    board.panels.flatMap((panel) => (panel.targets ?? []).map((target) => [`panel ${panel.title}`, target.expr])),
  );
  return [...alerts, ...panels];
}

const flags = new Set(
  [...read('controller/src/args.rs').matchAll(/#\[arg\(long.*\)\]\s*pub (\w+):/g)].map(([, name]) => `--${name.replaceAll('_', '-')}`),
);
const settings = new Set(
  [...read('core/src/admission/settings.rs').matchAll(/settings\.(?:string|strings|bool)\("(\w+)"\)/g)].map(([, name]) => name),
);

/** The arguments and settings of what is rendered that the code does not know. */
function unknown(all) {
  const args = container(all).args.map((arg) => arg.split('=')[0]);
  const set = policies(all).flatMap((object) => Object.keys(object.spec.settings));
  return [
    ...args.filter((arg) => !flags.has(arg)).map((arg) => `the controller has no argument ${arg}`),
    ...set.filter((name) => !settings.has(name)).map((name) => `the policy has no setting ${name}`),
  ];
}

const EVERYTHING = {
  'namespace.create': true,
  'serviceMonitor.enabled': true,
  'serviceMonitor.labels': { release: 'prometheus' },
  'prometheusRule.enabled': true,
  'dashboards.enabled': true,
  'networkPolicy.enabled': true,
  podGroupOwnerReference: true,
  'featureGates.DRAWorkloadResourceClaims': false,
  carriers: ['annotation'],
  watchNamespace: 'databases',
  client: { qps: 50, burst: 80 },
  concurrency: 4,
  port: 9090,
  dryRun: true,
  log: { format: 'text', filter: 'debug' },
  imagePullSecrets: [{ name: 'registry' }],
  priorityClassName: 'system-cluster-critical',
  tolerations: [{ key: 'control-plane', operator: 'Exists' }],
  affinity: { nodeAffinity: {} },
  podLabels: { team: 'platform' },
  podAnnotations: { a: 'b' },
  'serviceAccount.annotations': { a: 'b' },
  'image.digest': `sha256:${'0'.repeat(64)}`,
  'policy.module.digest': `sha256:${'1'.repeat(64)}`,
  'policy.statefulSetControllers': ['system:kube-controller-manager'],
};

/** Values that must be refused, each with a word of the reason. */
const REFUSED = [
  [{ engine: 'gatekeeper' }, 'engine'],
  [{ engine: 'webhook' }, 'not rendered by this chart'],
  [{ replicas: -1 }, 'replicas'],
  [{ replicas: 'two' }, 'replicas'],
  [{ featureGates: { WorkloadWithStatefulSets: false } }, 'WorkloadWithStatefulSets'],
  [{ 'featureGates.DRAWorkloadResourceClaims': 'false' }, 'DRAWorkloadResourceClaims'],
  [{ carriers: [] }, 'carriers'],
  [{ carriers: ['label'] }, 'carriers'],
  [{ podGroupOwnerReference: 'yes' }, 'podGroupOwnerReference'],
  [{ watchNamespace: 'two,namespaces' }, 'watchNamespace'],
  [{ 'policy.pods.failurePolicy': 'Allow' }, 'failurePolicy'],
  [{ 'policy.pods.timeoutSeconds': 1 }, 'timeoutSeconds'],
  [{ 'policy.pods.timeoutSeconds': 31 }, 'timeoutSeconds'],
  [{ 'policy.module.repository': 'ghcr.io/no/scheme' }, 'repository'],
  [{ 'image.digest': 'sha256:0' }, 'digest'],
  [{ 'log.format': 'xml' }, 'format'],
  [{ concurrency: 0 }, 'concurrency'],
  [{ port: 80 }, 'port'],
  [{ unknown: 1 }, 'unknown'],
  [{ 'policy.mode': 'monitor' }, 'mode'],
];

const checks = new Checks();
const kustomize = ['deploy/controller', 'deploy/kubewarden'].flatMap((path) => objects(kubectl('kustomize', join(root, path))));

checks.check('helm lint', () => void helm('lint', '--strict', '--quiet', CHART, '--kube-version', '1.37.0'));

checks.check('the chart has the version of the workspace', () => {
  const chart = parse(read('deploy/chart/Chart.yaml'));
  const [, version] = read('Cargo.toml').match(/\[workspace\.package\][^[]*?version = "([^"]+)"/);
  return [chart.version, chart.appVersion].filter((found) => found !== version).map((found) => `${found} is not ${version}`);
});

checks.check("chart and kustomize render the same objects, Helm's labels and the Namespace aside", () =>
  compare(render(), kustomize.filter((object) => object.kind !== 'Namespace')));
checks.check("with namespace.create they render the same, Helm's labels aside", () =>
  compare(render({ 'namespace.create': true }), kustomize));

checks.check('a difference is found', () => {
  const changed = structuredClone(kustomize);
  find(changed, 'Deployment').spec.replicas = 3;
  changed.pop();
  const found = compare(render({ 'namespace.create': true }), changed);
  return found.length === 2 ? [] : [`not 2: ${found.join('; ')}`];
});

checks.check('every object has what its kind requires: defaults, everything, one replica, no engine, kustomize', () => [
  ...validate(render()),
  ...validate(render(EVERYTHING)),
  ...validate(render({ replicas: 1 })),
  ...validate(render({ engine: 'none' })),
  ...validate(kustomize),
]);

checks.check('an object that lacks what its kind requires is found', () => {
  const all = render(EVERYTHING);
  delete find(all, 'Deployment').spec.selector;
  delete find(all, 'NetworkPolicy').spec.podSelector;
  find(all, 'ServiceMonitor').spec.endpoints = {};
  delete policies(all)[0].spec.module;
  delete find(all, 'Role').metadata.namespace;
  const found = validate(all);
  return found.length === 5 ? [] : [`not 5: ${found.join('; ')}`];
});

checks.check('arguments and settings are those of the code', () => [...unknown(render()), ...unknown(render(EVERYTHING))]);

checks.check('one value reaches policy and controller', () => {
  const all = render({
    podGroupOwnerReference: true,
    'featureGates.DRAWorkloadResourceClaims': false,
    'featureGates.WorkloadWithStatefulSet': false,
    carriers: ['annotation'],
  });
  const problems = [];
  const gates = 'DRAWorkloadResourceClaims=false,WorkloadWithStatefulSet=false';
  for (const arg of [`--feature-gates=${gates}`, '--carriers=annotation', '--pod-group-owner-reference']) {
    if (!container(all).args.includes(arg)) problems.push(`the controller has no ${arg}`);
  }
  const expected = { carriers: ['annotation'], featureGates: gates, podGroupOwnerReference: true };
  for (const object of policies(all)) {
    problems.push(...differences(object.metadata.name, object.spec.settings, expected));
  }
  return policies(all).length === 4 ? problems : ['there are not 4 policies'];
});

checks.check('carriers in another order are the default', () =>
  differences('args', container(render({ carriers: ['annotation', 'field'] })).args, container(render()).args));

checks.check('in another namespace, and as another ServiceAccount, the policy trusts the controller there', () => {
  const all = render({ 'serviceAccount.name': 'scheduler' }, 'elsewhere');
  const subject = find(all, 'ClusterRoleBinding', 'statefulset-scheduling-controller').subjects[0];
  return [
    ...policies(all).flatMap((object) =>
      differences(object.metadata.name, object.spec.settings, { controllers: ['system:serviceaccount:elsewhere:scheduler'] })),
    ...differences('subject', subject, { kind: 'ServiceAccount', name: 'scheduler', namespace: 'elsewhere' }),
    ...(find(all, 'ClusterAdmissionPolicy').spec.namespaceSelector.matchExpressions[0].values.includes('elsewhere')
      ? []
      : ['its own namespace is not excluded']),
  ];
});

checks.check('with watchNamespace the role is granted there alone, and every policy selects it alone', () => {
  const all = render({ watchNamespace: 'databases' });
  const binding = find(all, 'RoleBinding', 'statefulset-scheduling-controller');
  const only = { matchLabels: { 'kubernetes.io/metadata.name': 'databases' } };
  return [
    ...(binding.metadata.namespace === 'databases' ? [] : ['the RoleBinding is elsewhere']),
    ...(all.some((object) => object.kind === 'ClusterRoleBinding' && object.metadata.name === binding.metadata.name)
      ? ['there is a ClusterRoleBinding']
      : []),
    ...policies(all).flatMap((object) => differences(object.metadata.name, object.spec.namespaceSelector, only)),
  ];
});

checks.check('one replica has no election, no PodDisruptionBudget and no second beside it', () => {
  const all = render({ replicas: 1 });
  return [
    ...(container(all).args.includes('--leader-elect') ? ['it elects'] : []),
    ...(all.some((object) => object.kind === 'PodDisruptionBudget') ? ['it has a PodDisruptionBudget'] : []),
    ...(find(all, 'Deployment').spec.strategy.type === 'Recreate' ? [] : ['its strategy is not Recreate']),
  ];
});

checks.check('engine none renders no policy', () =>
  render({ engine: 'none' }).filter((object) => object.metadata.name.startsWith('statefulset-scheduling-po')).map(nameOf));

checks.check('every value has a schema, and every schema a value', () => {
  const whole = JSON.parse(read('deploy/chart/values.schema.json'));
  const walk = (schema, value, path) => {
    if (!schema.properties || value === null || typeof value !== 'object') return [];
    const keys = new Set([...Object.keys(schema.properties), ...Object.keys(value)]);
    return [...keys].flatMap((key) => {
      const at = [...path, key].join('.');
      if (at === 'global' || at.startsWith('policy.namespaceSelector.')) return [];
      if (!(key in value)) return [`values.yaml has no ${at}`];
      const below = schema.properties[key];
      if (!below) return [`values.schema.json has no ${at}`];
      const definition = below.$ref ? whole.definitions[below.$ref.split('/').pop()] : below;
      return walk(definition, value[key], [...path, key]);
    });
  };
  return walk(whole, parse(read('deploy/chart/values.yaml')), []);
});

checks.check(`${REFUSED.length} bad values are refused, each for its reason`, () =>
  REFUSED.flatMap(([values, word]) => {
    try {
      render(values);
    } catch (error) {
      return error.message.includes(word) ? [] : [`${JSON.stringify(values)}: ${error.message}`];
    }
    return [`${JSON.stringify(values)} is taken`];
  }));

checks.check('alerts and panels ask for metrics and labels that there are', () => {
  const all = [
    ...queries(render({ 'prometheusRule.enabled': true, 'dashboards.enabled': true })),
    ...queries(render({ replicas: 1, 'prometheusRule.enabled': true })),
  ];
  const alerts = new Set(all.map(([name]) => name).filter((name) => name.startsWith('alert ')));
  return [
    ...all.flatMap(([name, query]) => queryProblems(query).map((problem) => `${name}: ${problem}`)),
    ...(alerts.size === 4 ? [] : [`there are ${alerts.size} alerts, not 4`]),
  ];
});

checks.check('the panels show every metric of the controller', () => {
  const text = readdirSync(join(CHART, 'dashboards')).map((file) => read(`deploy/chart/dashboards/${file}`)).join('\n');
  const names = [...series().keys()].filter((name) => !/_(sum|count)$/.test(name));
  return names.filter((name) => !text.includes(name)).map((name) => `no panel shows ${name}`);
});

checks.check('a query that asks for what there is not is found', () =>
  [
    ['sum(statefulset_scheduling_leeding)', 'no metric statefulset_scheduling_leeding'],
    ['sum by (pod_group) (statefulset_workload_bound)', 'a label pod_group'],
    ['sum(rate(statefulset_workload_bound)', 'syntax error'],
    ['statefulset_scheduling_api_requests_total{status="200"}', 'a label status'],
  ].flatMap(([query, word]) => (queryProblems(query).some((problem) => problem.includes(word)) ? [] : [`${query} is taken`])));

checks.end();
