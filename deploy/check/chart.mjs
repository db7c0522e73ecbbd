// Renders the chart and the kustomizations and compares them, and judges what is rendered.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { parse, parseAllDocuments } from 'yaml';
import * as admission from 'kubernetes-models/admissionregistration.k8s.io/v1';
import * as apps from 'kubernetes-models/apps/v1';
import * as core from 'kubernetes-models/v1';
import * as networking from 'kubernetes-models/networking.k8s.io/v1';
import * as policy from 'kubernetes-models/policy/v1';
import * as rbac from 'kubernetes-models/rbac.authorization.k8s.io/v1';
import * as monitoring from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';
import { queryProblems, series } from './metrics.mjs';
import { CHART, Checks, NAMESPACE, helm, kubectl, root, template } from './tools.mjs';

const CONTROLLER = 'statefulset-scheduling-controller';
const WEBHOOK = 'statefulset-scheduling-webhook';
/** What kustomize has of what the chart renders, by engine. */
const FOLDERS = {
  kubewarden: ['deploy/controller', 'deploy/kubewarden'],
  webhook: ['deploy/controller', 'deploy/webhook'],
};
const ENGINES = Object.keys(FOLDERS);
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
const render = (values, namespace) => objects(template(values, namespace));

const nameOf = (object) =>
  [object.apiVersion, object.kind, object.metadata.namespace, object.metadata.name].filter(Boolean).join(' ');
const find = (all, kind, name) => {
  const found = all.find((object) => object.kind === kind && (name === undefined || object.metadata.name === name));
  if (!found) throw new Error(`there is no ${kind} ${name ?? ''}`);
  return found;
};
const policies = (all) => all.filter((object) => object.kind === 'ClusterAdmissionPolicy');
const configurations = (all) => all.filter((object) => object.kind.endsWith('WebhookConfiguration'));
const webhooks = (all) => configurations(all).flatMap((object) => object.webhooks);
const container = (all, name = CONTROLLER) => find(all, 'Deployment', name).spec.template.spec.containers[0];

function withoutHelmLabels(object) {
  const copy = structuredClone(object);
  for (const label of HELM_LABELS) delete copy.metadata.labels?.[label];
  if (copy.metadata.labels && Object.keys(copy.metadata.labels).length === 0) delete copy.metadata.labels;
  return copy;
}

function differences(path, left, right) {
  if (isDeepStrictEqual(left, right)) return [];
  if (Array.isArray(left) && Array.isArray(right) && left.length === right.length) {
    return left.flatMap((value, index) => differences(`${path}[${index}]`, value, right[index]));
  }
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
  'admissionregistration.k8s.io/v1 MutatingWebhookConfiguration': admission.MutatingWebhookConfiguration,
  'admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration': admission.ValidatingWebhookConfiguration,
  'policy/v1 PodDisruptionBudget': policy.PodDisruptionBudget,
  'networking.k8s.io/v1 NetworkPolicy': networking.NetworkPolicy,
  'rbac.authorization.k8s.io/v1 ClusterRole': rbac.ClusterRole,
  'rbac.authorization.k8s.io/v1 ClusterRoleBinding': rbac.ClusterRoleBinding,
  'rbac.authorization.k8s.io/v1 Role': rbac.Role,
  'rbac.authorization.k8s.io/v1 RoleBinding': rbac.RoleBinding,
  'monitoring.coreos.com/v1 ServiceMonitor': monitoring.ServiceMonitor,
  'monitoring.coreos.com/v1 PrometheusRule': monitoring.PrometheusRule,
};
const CLUSTER_SCOPED = new Set([
  'Namespace',
  'ClusterRole',
  'ClusterRoleBinding',
  'ClusterAdmissionPolicy',
  'MutatingWebhookConfiguration',
  'ValidatingWebhookConfiguration',
]);
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
/** What policy and webhook have alike: what they are asked about, and what happens without an answer. */
const ASKED = ['failurePolicy', 'timeoutSeconds', 'rules', 'namespaceSelector', 'objectSelector', 'matchConditions'];
const [, PATH] = read('controller/src/webhook/server.rs').match(/pub const PATH: &str = "([^"]+)";/);
/** The fields of a webhook, and how each is to be. */
const HOOK = {
  name: (value) => /^[a-z0-9-]+\.statefulset-scheduling\.dev$/.test(value),
  admissionReviewVersions: (value) => isDeepStrictEqual(value, ['v1']),
  sideEffects: (value) => value === 'None',
  clientConfig: (value) =>
    value?.service?.name === WEBHOOK &&
    Boolean(value.service.namespace) &&
    value.service.path === PATH &&
    value.service.port === 443 &&
    Object.keys(value).every((key) => ['service', 'caBundle'].includes(key)),
  failurePolicy: POLICY.failurePolicy,
  timeoutSeconds: POLICY.timeoutSeconds,
  rules: POLICY.rules,
};

function fieldProblems(path, object, required, optional) {
  const problems = [];
  for (const [field, judge] of Object.entries(required)) {
    if (!judge(object?.[field])) problems.push(`${path}.${field} is ${JSON.stringify(object?.[field])}`);
  }
  for (const field of Object.keys(object ?? {})) {
    if (!(field in required) && !optional.includes(field)) problems.push(`${path}.${field} is unknown`);
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
    problems.push(...fieldProblems('spec', object.spec, POLICY, OPTIONAL));
  } else if (MODELS[kind]) {
    try {
      new MODELS[kind](object).validate();
    } catch (error) {
      problems.push(error.message);
    }
  } else {
    problems.push('is of a kind that nothing here knows');
  }
  for (const [index, webhook] of (configurations([object])[0]?.webhooks ?? []).entries()) {
    const optional = OPTIONAL.filter((field) => ASKED.includes(field));
    problems.push(...fieldProblems(`webhooks[${index}]`, webhook, HOOK, optional));
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

/** The flags and the environment variables of a source. */
function argumentsOf(source) {
  const found = [...source.matchAll(/#\[arg\(long(?: = "([\w-]+)")?(?:, ([^]*?))?\)\]\s*pub (\w+):/g)];
  const flags = found.map(([, name, , field]) => `--${name ?? field.replaceAll('_', '-')}`);
  const variables = found.map(([, , rest]) => rest?.match(/env = "(\w+)"/)?.[1]);
  return { flags: new Set(flags), variables: new Set(variables) };
}

const CONTROLLER_ARGS = read('controller/src/args.rs');
/** What both are told: the struct that each flattens. */
const [SHARED_ARGS] = CONTROLLER_ARGS.match(/pub struct Shared \{[^]*?\n\}/);

const ARGUMENTS = {
  [CONTROLLER]: argumentsOf(CONTROLLER_ARGS),
  [WEBHOOK]: argumentsOf(SHARED_ARGS + read('controller/src/webhook/args.rs')),
};
const settings = new Set(
  [...read('core/src/admission/settings.rs').matchAll(/settings\.(?:string|strings|bool)\("(\w+)"\)/g)].map(([, name]) => name),
);

/** The arguments, variables and settings of what is rendered that the code does not know. */
function unknown(all) {
  const processes = all.filter((object) => object.kind === 'Deployment').flatMap(({ metadata: { name } }) => {
    const { args, env } = container(all, name);
    // The webhook is a subcommand, and has the flags.
    const given = name === WEBHOOK && args[0] === 'webhook' ? args.slice(1) : args;
    // The log reads it by itself.
    const variables = env.map((variable) => variable.name).filter((variable) => variable !== 'RUST_LOG');
    return [
      ...given.map((arg) => arg.split('=')[0]).filter((arg) => !ARGUMENTS[name].flags.has(arg)),
      ...variables.filter((variable) => !ARGUMENTS[name].variables.has(variable)),
    ].map((what) => `${name} does not know ${what}`);
  });
  const set = policies(all).flatMap((object) => Object.keys(object.spec.settings));
  return [...processes, ...set.filter((name) => !settings.has(name)).map((name) => `the policy has no setting ${name}`)];
}

/** How the four webhooks differ from the four policies in what they are asked about. */
function drift(values) {
  const [left, right] = ENGINES.map((engine) => render({ ...values, engine }));
  const asked = new Map(webhooks(right).map((webhook) => [webhook.name, webhook]));
  const problems = policies(left).flatMap(({ metadata, spec }) => {
    const name = `${metadata.name}.statefulset-scheduling.dev`;
    const webhook = asked.get(name);
    if (!webhook) return [`there is no webhook ${name}`];
    const kind = spec.mutating ? 'MutatingWebhookConfiguration' : 'ValidatingWebhookConfiguration';
    return [
      ...ASKED.flatMap((field) => differences(`${name}.${field}`, webhook[field], spec[field])),
      ...(find(right, kind).webhooks.includes(webhook) ? [] : [`${name} is in no ${kind}`]),
    ];
  });
  return policies(left).length === 4 && asked.size === 4 ? problems : ['there are not 4 policies and 4 webhooks'];
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
  'policy.pods': { failurePolicy: 'Ignore', timeoutSeconds: 3 },
  'networkPolicy.webhookFrom': [{ ipBlock: { cidr: '10.0.0.1/32' } }],
  'networkPolicy.apiServerTo': [{ ipBlock: { cidr: '10.0.0.1/32' } }],
  'webhook.replicas': 3,
  'webhook.port': 10443,
  'webhook.concurrency': 8,
  'webhook.serviceAccount': { name: 'webhook', annotations: { a: 'b' } },
};
const AUTHORITY = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';
/** A certificate from a file. */
const FILE = { 'webhook.certificate': { secretName: 'tls', caBundle: AUTHORITY } };
const INJECTED = { 'webhook.certificate': { secretName: 'tls', annotations: { 'cert-manager.io/inject-ca-from': 'a/b' } } };
const MONITORED = { 'prometheusRule.enabled': true, 'dashboards.enabled': true };

/** Values that must be refused, each with a word of the reason. */
const REFUSED = [
  [{ engine: 'gatekeeper' }, 'engine'],
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
  [{ podLabels: { 'statefulset-scheduling.dev/managed': 'true' } }, "invalid propertyName 'statefulset-scheduling.dev/managed'"],
  [{ podLabels: { 'app.kubernetes.io/name': 'mine' } }, "invalid propertyName 'app.kubernetes.io/name'"],
  ...[
    [{ 'webhook.replicas': 0 }, 'replicas'],
    [{ 'webhook.replicas': 'two' }, 'replicas'],
    [{ 'webhook.port': 443 }, 'port'],
    [{ 'webhook.port': 65536 }, 'port'],
    [{ 'webhook.port': 8080 }, 'one port'],
    [{ port: 9443 }, 'one port'],
    [{ 'webhook.concurrency': 0 }, 'concurrency'],
    [{ 'webhook.unknown': 1 }, 'unknown'],
    [{ 'webhook.certificate.key': 'x' }, 'key'],
    [{ 'webhook.serviceAccount.name': 'Webhook' }, 'name'],
    [{ 'webhook.serviceAccount.name': CONTROLLER }, "is the controller's"],
    [{ 'webhook.certificate.secretName': 'a/b' }, 'secretName'],
    [{ 'webhook.certificate.secretName': 'tls' }, 'needs caBundle'],
    [{ 'webhook.certificate.caBundle': AUTHORITY }, 'needs secretName'],
    [{ 'webhook.certificate.annotations': { a: 'b' } }, 'need secretName'],
    [{ ...FILE, 'webhook.certificate.caBundle': 'TUlJQg==' }, 'caBundle'],
    [{ ...FILE, 'webhook.certificate.caBundle': AUTHORITY.replaceAll('CERTIFICATE', 'PRIVATE KEY') }, 'caBundle'],
    [{ 'networkPolicy.webhookFrom': ['10.0.0.1'] }, 'webhookFrom'],
    [{ 'policy.statefulSets.failurePolicy': 'Allow' }, 'failurePolicy'],
    [{ 'policy.podsDeletion.timeoutSeconds': 31 }, 'timeoutSeconds'],
    [{ carriers: ['label'] }, 'carriers'],
    [{ featureGates: { WorkloadWithStatefulSets: false } }, 'WorkloadWithStatefulSets'],
  ].map(([values, word]) => [{ engine: 'webhook', ...values }, word]),
];

const checks = new Checks();
const kustomize = Object.fromEntries(
  ENGINES.map((engine) => [engine, FOLDERS[engine].flatMap((path) => objects(kubectl('kustomize', join(root, path))))]),
);

for (const engine of ENGINES) {
  checks.check(`helm lint, with ${engine}`, () =>
    void helm('lint', '--strict', '--quiet', CHART, '--kube-version', '1.37.0', '--set', `engine=${engine}`));
}

checks.check('the chart has the version of the workspace', () => {
  const chart = parse(read('deploy/chart/Chart.yaml'));
  const [, version] = read('Cargo.toml').match(/\[workspace\.package\][^[]*?version = "([^"]+)"/);
  return [chart.version, chart.appVersion].filter((found) => found !== version).map((found) => `${found} is not ${version}`);
});

checks.check("chart and kustomize render the same objects, Helm's labels and the Namespace aside", () =>
  compare(render(), kustomize.kubewarden.filter((object) => object.kind !== 'Namespace')));
for (const engine of ENGINES) {
  checks.check(`with ${engine} and namespace.create they render the same, Helm's labels aside`, () =>
    compare(render({ engine, 'namespace.create': true }), kustomize[engine]));
}

checks.check('a difference is found', () =>
  ENGINES.flatMap((engine) => {
    const changed = structuredClone(kustomize[engine]);
    find(changed, 'Deployment').spec.replicas = 3;
    changed.pop();
    const found = compare(render({ engine, 'namespace.create': true }), changed);
    return found.length === 2 ? [] : [`${engine}, not 2: ${found.join('; ')}`];
  }));

checks.check('every object has what its kind requires: defaults, everything, one replica, no engine, kustomize', () => [
  ...ENGINES.flatMap((engine) => [
    ...validate(render({ engine })),
    ...validate(render({ ...EVERYTHING, engine })),
    ...validate(render({ engine, replicas: 1, 'webhook.replicas': 1 })),
    ...validate(kustomize[engine]),
  ]),
  ...validate(render({ engine: 'none' })),
  ...validate(render({ ...EVERYTHING, ...FILE, engine: 'webhook' })),
  ...validate(render({ ...INJECTED, engine: 'webhook' })),
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

checks.check('a webhook that lacks what it requires, or says what is not known, is found', () => {
  const all = render({ engine: 'webhook' });
  const [first, second, third, fourth] = webhooks(all);
  first.clientConfig.service.path = '/';
  delete second.sideEffects;
  third.clientConfig.url = 'https://elsewhere';
  fourth.matchPolicy = 'Exact';
  find(all, 'MutatingWebhookConfiguration').metadata.namespace = NAMESPACE;
  delete find(all, 'Service', WEBHOOK).spec.ports[0].port;
  const found = validate(all);
  // That sideEffects is not there, the model says too.
  return found.length === 7 ? [] : [`not 7: ${found.join('; ')}`];
});

checks.check('arguments, variables and settings are those of the code', () => [
  ...ENGINES.flatMap((engine) => [...unknown(render({ engine })), ...unknown(render({ ...EVERYTHING, engine }, 'elsewhere'))]),
  ...unknown(render({ ...EVERYTHING, ...FILE, engine: 'webhook' })),
  // Of each process one that takes a value and one that does not, so that hardly any is overlooked.
  ...['--client-qps', '--dry-run'].filter((flag) => !ARGUMENTS[CONTROLLER].flags.has(flag)),
  ...['--controller-user', '--self-signed'].filter((flag) => !ARGUMENTS[WEBHOOK].flags.has(flag)),
]);

checks.check('an argument, a variable and a setting that the code does not know are found', () => {
  const all = [...render(), ...render({ engine: 'webhook' }).filter((object) => object.metadata.name === WEBHOOK)];
  container(all).args.push('--self-signed');
  container(all, WEBHOOK).args.push('--leader-elect');
  container(all, WEBHOOK).env[0].name = 'POD_NAME';
  policies(all)[0].spec.settings.controller = 'x';
  const found = unknown(all);
  return found.length === 4 ? [] : [`not 4: ${found.join('; ')}`];
});

checks.check('policies and webhooks are asked about the same', () => [
  ...drift({}),
  ...drift(EVERYTHING),
  ...drift({ 'policy.namespaceSelector': { matchLabels: { team: 'databases' } } }),
  ...drift({ 'policy.excludedNamespaces': ['kube-system'] }),
  ...['statefulSets', 'final', 'pods', 'podsDeletion'].flatMap((answer) =>
    ['Fail', 'Ignore'].flatMap((failurePolicy) => drift({ [`policy.${answer}`]: { failurePolicy, timeoutSeconds: 7 } }))),
]);

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

checks.check('one value reaches webhook and controller', () => {
  const all = render({
    engine: 'webhook',
    podGroupOwnerReference: true,
    'featureGates.DRAWorkloadResourceClaims': false,
    'featureGates.WorkloadWithStatefulSet': false,
    carriers: ['annotation'],
    'policy.statefulSetControllers': ['one', 'other'],
    log: { format: 'text', filter: 'debug' },
    port: 9090,
    priorityClassName: 'system-cluster-critical',
    podLabels: { team: 'platform' },
    podAnnotations: { a: 'b' },
    nodeSelector: { 'kubernetes.io/os': null, role: 'control' },
    tolerations: [{ key: 'control-plane', operator: 'Exists' }],
    affinity: { nodeAffinity: {} },
    podSecurityContext: { runAsUser: 7 },
    securityContext: { runAsGroup: 8 },
    imagePullSecrets: [{ name: 'registry' }],
    image: { repository: 'registry.example/controller', tag: 'v9', pullPolicy: 'Always' },
  });
  const alike = [
    '--feature-gates=DRAWorkloadResourceClaims=false,WorkloadWithStatefulSet=false',
    '--carriers=annotation',
    '--pod-group-owner-reference',
    '--log-format=text',
    '--listen=0.0.0.0:9090',
  ];
  const users = ['--statefulset-controller-user=one', '--statefulset-controller-user=other'];
  const pod = (name) => {
    const { metadata, spec } = find(all, 'Deployment', name).spec.template;
    const { 'app.kubernetes.io/name': _, ...labels } = metadata.labels;
    const { 'kubectl.kubernetes.io/default-container': __, ...annotations } = metadata.annotations;
    const { containers, serviceAccountName, topologySpreadConstraints, ...rest } = spec;
    const { image, imagePullPolicy, livenessProbe, readinessProbe, securityContext, ports, env } = containers[0];
    const http = ports.find((port) => port.name === 'http');
    const filter = env.find((variable) => variable.name === 'RUST_LOG');
    return { labels, annotations, rest, image, imagePullPolicy, livenessProbe, readinessProbe, securityContext, http, filter };
  };
  return [
    ...differences('pod', pod(CONTROLLER), pod(WEBHOOK)),
    ...(pod(WEBHOOK).filter?.value === 'debug' && pod(WEBHOOK).rest.priorityClassName ? [] : ['nothing is compared']),
    ...alike.filter((arg) => !container(all).args.includes(arg)).map((arg) => `the controller has no ${arg}`),
    ...[...alike, ...users].filter((arg) => !container(all, WEBHOOK).args.includes(arg)).map((arg) => `the webhook has no ${arg}`),
  ];
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

checks.check('in another namespace, and as other ServiceAccounts, the webhook trusts the controller there and is called there', () => {
  const all = render(
    { engine: 'webhook', 'serviceAccount.name': 'scheduler', 'webhook.serviceAccount.name': 'admission' },
    'elsewhere',
  );
  const account = { kind: 'ServiceAccount', name: 'admission', namespace: 'elsewhere' };
  return [
    ...(container(all, WEBHOOK).args.includes('--controller-user=system:serviceaccount:elsewhere:scheduler')
      ? []
      : ['it trusts another controller']),
    ...webhooks(all).flatMap((webhook) => differences(webhook.name, webhook.clientConfig.service.namespace, 'elsewhere')),
    ...differences('subject', find(all, 'ClusterRoleBinding', WEBHOOK).subjects, [account]),
    ...differences('subject', find(all, 'RoleBinding', `${WEBHOOK}-certificate`).subjects, [account]),
    ...differences('account', find(all, 'Deployment', WEBHOOK).spec.template.spec.serviceAccountName, 'admission'),
    ...(find(all, 'ServiceAccount', 'admission').metadata.namespace === 'elsewhere' ? [] : ['the account is elsewhere']),
    ...webhooks(all)
      .filter((webhook) => webhook.matchConditions && !webhook.namespaceSelector.matchExpressions[0].values.includes('elsewhere'))
      .map((webhook) => `${webhook.name} does not exclude its own namespace`),
  ];
});

checks.check('Services, monitors, budgets and NetworkPolicies select the pods that they are for, at ports that these have', () =>
  ENGINES.flatMap((engine) => {
    const all = render({ ...EVERYTHING, engine });
    const templates = all.filter((object) => object.kind === 'Deployment').map((object) => object.spec.template);
    const selected = (labels) =>
      templates.filter((pod) => Object.entries(labels).every(([label, value]) => pod.metadata.labels[label] === value));
    const ports = (pod) => pod.spec.containers[0].ports.map((port) => port.name);
    const one = (object, labels, named) => {
      const pods = selected(labels);
      if (pods.length !== 1) return [`${nameOf(object)} selects ${pods.length} Deployments`];
      const self = object.metadata.name.startsWith(WEBHOOK) ? 'webhook' : 'controller';
      return [
        ...(pods[0].spec.containers[0].name === self ? [] : [`${nameOf(object)} selects other pods`]),
        ...named.filter((port) => !ports(pods[0]).includes(port)).map((port) => `${nameOf(object)} has the port ${port}`),
      ];
    };
    const services = all.filter((object) => object.kind === 'Service');
    return all.flatMap((object) => {
      const { spec } = object;
      if (object.kind === 'Service') return one(object, spec.selector, spec.ports.map((port) => port.targetPort));
      if (object.kind === 'PodDisruptionBudget') return one(object, spec.selector.matchLabels, []);
      if (object.kind === 'NetworkPolicy') {
        return one(object, spec.podSelector.matchLabels, spec.ingress.flatMap((rule) => rule.ports.map((port) => port.port)));
      }
      if (object.kind !== 'ServiceMonitor') return [];
      const scraped = services.filter(
        (service) =>
          Object.entries(spec.selector.matchLabels).every(([label, value]) => service.metadata.labels[label] === value) &&
          spec.endpoints.every((endpoint) => service.spec.ports.some((port) => port.name === endpoint.port)),
      );
      return scraped.length === 1 ? [] : [`${nameOf(object)} scrapes ${scraped.length} Services`];
    });
  }));

checks.check('a certificate from a file is mounted read only and trusted, and nothing may be written then', () => {
  const all = render({ ...FILE, engine: 'webhook' });
  const { spec } = find(all, 'Deployment', WEBHOOK).spec.template;
  const [mount] = spec.containers[0].volumeMounts;
  const flags = ['cert', 'key'].map((name) => [name, container(all, WEBHOOK).args.find((arg) => arg.startsWith(`--tls-${name}=`))]);
  const injected = configurations(render({ ...INJECTED, engine: 'webhook' }));
  return [
    ...differences('volumes', spec.volumes, [{ name: mount.name, secret: { secretName: 'tls' } }]),
    ...(mount.readOnly === true && mount.subPath === undefined ? [] : ['it is mounted otherwise']),
    ...flags.flatMap(([name, flag]) => differences(name, flag, `--tls-${name}=${mount.mountPath}/tls.${name === 'cert' ? 'crt' : 'key'}`)),
    ...(container(all, WEBHOOK).args.includes('--self-signed') ? ['it makes one too'] : []),
    ...webhooks(all).flatMap(({ name, clientConfig }) =>
      differences(name, Buffer.from(clientConfig.caBundle, 'base64').toString(), AUTHORITY)),
    ...differences('rules', find(all, 'ClusterRole', WEBHOOK).rules, [
      { apiGroups: ['apps'], resources: ['statefulsets'], verbs: ['get'] },
    ]),
    ...all.filter((object) => object.metadata.name === `${WEBHOOK}-certificate`).map(nameOf),
    ...injected.flatMap((object) =>
      differences(nameOf(object), object.metadata.annotations, { 'cert-manager.io/inject-ca-from': 'a/b' })),
    ...injected.flatMap((object) => object.webhooks).filter((webhook) => webhook.clientConfig.caBundle).map(({ name }) => name),
  ];
});

checks.check('a self-signed certificate has no volume, and its authority is left to the webhook', () => {
  const all = render({ engine: 'webhook' });
  return [
    ...(find(all, 'Deployment', WEBHOOK).spec.template.spec.volumes ? ['it has a volume'] : []),
    ...webhooks(all).filter((webhook) => webhook.clientConfig.caBundle).map(({ name }) => `${name} has a caBundle`),
    ...configurations(all).filter((object) => object.metadata.annotations).map(nameOf),
  ];
});

checks.check('with watchNamespace the role is granted there alone, and every policy and webhook selects it alone', () => {
  const all = render({ watchNamespace: 'databases' });
  const binding = find(all, 'RoleBinding', 'statefulset-scheduling-controller');
  const only = { matchLabels: { 'kubernetes.io/metadata.name': 'databases' } };
  return [
    ...(binding.metadata.namespace === 'databases' ? [] : ['the RoleBinding is elsewhere']),
    ...(all.some((object) => object.kind === 'ClusterRoleBinding' && object.metadata.name === binding.metadata.name)
      ? ['there is a ClusterRoleBinding']
      : []),
    ...policies(all).flatMap((object) => differences(object.metadata.name, object.spec.namespaceSelector, only)),
    ...webhooks(render({ engine: 'webhook', watchNamespace: 'databases' })).flatMap((webhook) =>
      differences(webhook.name, webhook.namespaceSelector, only)),
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

checks.check('one replica of the webhook has no PodDisruptionBudget, and another comes before it goes', () => {
  const all = render({ engine: 'webhook', 'webhook.replicas': 1 });
  const budgets = all.filter((object) => object.kind === 'PodDisruptionBudget' && object.metadata.name === WEBHOOK);
  const { strategy } = find(all, 'Deployment', WEBHOOK).spec;
  return [
    ...budgets.map((object) => `it has ${nameOf(object)}`),
    ...differences('strategy', strategy, { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } }),
  ];
});

checks.check('an engine renders no other engine, and engine none renders none', () => {
  const everything = (engine) => render({ ...EVERYTHING, engine });
  const named = (engine, start) => everything(engine).filter((object) => object.metadata.name.startsWith(start)).map(nameOf);
  const account = EVERYTHING['webhook.serviceAccount'].name;
  return [
    ...named('none', 'statefulset-scheduling-po'),
    ...named('webhook', 'statefulset-scheduling-po'),
    ...['none', 'kubewarden'].flatMap((engine) => [...named(engine, WEBHOOK), ...named(engine, account)]),
    ...policies(everything('webhook')).map(nameOf),
    ...configurations(everything('kubewarden')).map(nameOf),
  ];
});

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

checks.check('alerts and panels ask for metrics, labels and results that there are', () => {
  const of = (values) => queries(render({ ...MONITORED, ...values }));
  const asked = {
    kubewarden: [...of({}), ...of({ replicas: 1 })],
    webhook: [...of({ engine: 'webhook' }), ...of({ engine: 'webhook', replicas: 1 }), ...of({ engine: 'webhook', ...FILE })],
  };
  const alerts = (all) => new Set(all.map(([name]) => name).filter((name) => name.startsWith('alert ')));
  const size = (what, all, expected) => (alerts(all).size === expected ? [] : [`${what}: ${alerts(all).size} alerts, not ${expected}`]);
  return [
    ...Object.values(asked).flat().flatMap(([name, query]) => queryProblems(query).map((problem) => `${name}: ${problem}`)),
    ...size('kubewarden', asked.kubewarden, 4),
    ...size('webhook', asked.webhook, 7),
    ...size('webhook with a certificate from a file', of({ engine: 'webhook', ...FILE }), 6),
    // What is nowhere cannot be asked for: an alert that it is absent would always fire.
    ...asked.kubewarden.filter(([, query]) => query.includes('statefulset_scheduling_webhook')).map(([name]) => name),
  ];
});

checks.check('the panels show every metric of controller and webhook', () => {
  const panels = queries(render({ 'dashboards.enabled': true, engine: 'webhook' }));
  const text = panels.map(([, query]) => query).join('\n');
  const names = [...series().keys()].filter((name) => !/_(sum|count)$/.test(name));
  return names.filter((name) => !text.includes(name)).map((name) => `no panel shows ${name}`);
});

checks.check('every dashboard is rendered', () => {
  const { data } = find(render({ ...MONITORED, engine: 'webhook' }), 'ConfigMap');
  return readdirSync(join(CHART, 'dashboards')).flatMap((file) =>
    differences(file, data[file] && JSON.parse(data[file]), JSON.parse(read(`deploy/chart/dashboards/${file}`))));
});

checks.check('a query that asks for what there is not is found', () =>
  [
    ['sum(statefulset_scheduling_leeding)', 'no metric statefulset_scheduling_leeding'],
    ['sum by (pod_group) (statefulset_workload_bound)', 'a label pod_group'],
    ['sum(rate(statefulset_workload_bound)', 'syntax error'],
    ['statefulset_scheduling_api_requests_total{status="200"}', 'a label status'],
    ['sum(statefulset_scheduling_webhook_reviews)', 'no metric statefulset_scheduling_webhook_reviews'],
    ['statefulset_scheduling_webhook_lookups_total{result=~"failed|denyed"}', 'ever denyed'],
  ].flatMap(([query, word]) => (queryProblems(query).some((problem) => problem.includes(word)) ? [] : [`${query} is taken`])));

checks.end();
