{{/* The name of all that is the controller's. It is fixed: there is one installation in a cluster. */}}
{{- define "statefulset-scheduling.controller" -}}
statefulset-scheduling-controller
{{- end }}

{{/* The name of all that is the webhook's, fixed as well. The webhook expects it of its Service and its configurations. */}}
{{- define "statefulset-scheduling.webhook" -}}
statefulset-scheduling-webhook
{{- end }}

{{/* The labels that Helm wants on what it installs. */}}
{{- define "statefulset-scheduling.helmLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* By which the controller's pods are selected. */}}
{{- define "statefulset-scheduling.selectorLabels" -}}
app.kubernetes.io/name: {{ include "statefulset-scheduling.controller" . }}
{{- end }}

{{- define "statefulset-scheduling.controllerLabels" -}}
{{ include "statefulset-scheduling.selectorLabels" . }}
app.kubernetes.io/part-of: statefulset-scheduling
{{ include "statefulset-scheduling.helmLabels" . }}
{{- end }}

{{/* By which the webhook's pods are selected. */}}
{{- define "statefulset-scheduling.webhookSelectorLabels" -}}
app.kubernetes.io/name: {{ include "statefulset-scheduling.webhook" . }}
{{- end }}

{{- define "statefulset-scheduling.webhookLabels" -}}
{{ include "statefulset-scheduling.webhookSelectorLabels" . }}
app.kubernetes.io/part-of: statefulset-scheduling
{{ include "statefulset-scheduling.helmLabels" . }}
{{- end }}

{{/* The gates that are closed, as --feature-gates has them. */}}
{{- define "statefulset-scheduling.closedGates" -}}
{{- $closed := list -}}
{{- range $gate, $open := .Values.featureGates -}}
{{- if not $open -}}
{{- $closed = append $closed (printf "%s=false" $gate) -}}
{{- end -}}
{{- end -}}
{{- join "," $closed -}}
{{- end }}

{{/* The carriers, where they are not all. */}}
{{- define "statefulset-scheduling.carriers" -}}
{{- $carriers := .Values.carriers | uniq | sortAlpha -}}
{{- if ne (join "," $carriers) "annotation,field" -}}
{{- join "," $carriers -}}
{{- end -}}
{{- end }}

{{/* Whether replicas elect one that writes. */}}
{{- define "statefulset-scheduling.elects" -}}
{{- if ne (int .Values.replicas) 1 -}}true{{- end -}}
{{- end }}

{{/* What controller and webhook are told alike. */}}
{{- define "statefulset-scheduling.sharedArgs" -}}
- --log-format={{ .Values.log.format }}
{{- with include "statefulset-scheduling.closedGates" . }}
- --feature-gates={{ . }}
{{- end }}
{{- with include "statefulset-scheduling.carriers" . }}
- --carriers={{ . }}
{{- end }}
{{- if .Values.podGroupOwnerReference }}
- --pod-group-owner-reference
{{- end }}
{{- if ne (int .Values.port) 8080 }}
- --listen=0.0.0.0:{{ int .Values.port }}
{{- end }}
{{- end }}

{{/* Where the pods of both may run, and as whom. */}}
{{- define "statefulset-scheduling.pod" -}}
automountServiceAccountToken: true
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Of the containers of both: it is one program. */}}
{{- define "statefulset-scheduling.container" -}}
image: {{ include "statefulset-scheduling.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
livenessProbe:
  httpGet:
    path: /healthz
    port: http
  periodSeconds: 10
  timeoutSeconds: 2
  failureThreshold: 3
readinessProbe:
  httpGet:
    path: /readyz
    port: http
  periodSeconds: 5
  timeoutSeconds: 2
  failureThreshold: 2
{{- with .Values.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "statefulset-scheduling.logFilter" -}}
{{- with .Values.log.filter -}}
- name: RUST_LOG
  value: {{ . | quote }}
{{- end }}
{{- end }}

{{- define "statefulset-scheduling.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "v%s" .Chart.AppVersion) }}
{{- end -}}
{{- end }}

{{- define "statefulset-scheduling.module" -}}
{{- with .Values.policy.module -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default (printf "v%s" $.Chart.AppVersion) }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The user that the controller is, where it is not the one that policy and webhook trust by default. */}}
{{- define "statefulset-scheduling.controllerUser" -}}
{{- $user := printf "system:serviceaccount:%s:%s" .Release.Namespace .Values.serviceAccount.name -}}
{{- if ne $user "system:serviceaccount:statefulset-scheduling-system:statefulset-scheduling-controller" -}}
{{- $user -}}
{{- end -}}
{{- end }}

{{/* The policy's settings: only what is not their default, so that an unknown one is never written. */}}
{{- define "statefulset-scheduling.settings" -}}
{{- $settings := dict -}}
{{- with include "statefulset-scheduling.closedGates" . -}}
{{- $_ := set $settings "featureGates" . -}}
{{- end -}}
{{- with include "statefulset-scheduling.carriers" . -}}
{{- $_ := set $settings "carriers" (splitList "," .) -}}
{{- end -}}
{{- with include "statefulset-scheduling.controllerUser" . -}}
{{- $_ := set $settings "controllers" (list .) -}}
{{- end -}}
{{- with .Values.policy.statefulSetControllers -}}
{{- $_ := set $settings "statefulSetControllers" . -}}
{{- end -}}
{{- if .Values.podGroupOwnerReference -}}
{{- $_ := set $settings "podGroupOwnerReference" true -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end }}

{{/* The namespaces whose StatefulSets, or whose pods, pass the policies; empty is all. */}}
{{- define "statefulset-scheduling.chosenNamespaces" -}}
{{- if .Values.policy.namespaceSelector -}}
{{- toYaml .Values.policy.namespaceSelector -}}
{{- else if .Values.watchNamespace -}}
matchLabels:
  kubernetes.io/metadata.name: {{ .Values.watchNamespace }}
{{- end -}}
{{- end }}

{{/*
The four policies, of every engine: the name, whether objects are changed, the value with the answer where nothing
answers, and of those for pods the operation.
*/}}
{{- define "statefulset-scheduling.policies" -}}
- {name: statefulset-scheduling, mutating: true, answer: statefulSets}
- {name: statefulset-scheduling-final, mutating: false, answer: final}
- {name: statefulset-scheduling-pods, mutating: true, answer: pods, podOperation: CREATE}
- {name: statefulset-scheduling-pods-deletion, mutating: false, answer: podsDeletion, podOperation: DELETE}
{{- end }}

{{/*
What a policy is asked about, and what happens without an answer, of every engine: given are the root and one of the
policies. What each failurePolicy means is told in deploy/kubewarden/README.md.
*/}}
{{- define "statefulset-scheduling.asked" -}}
{{- $chosen := include "statefulset-scheduling.chosenNamespaces" .root -}}
{{- $answer := get .root.Values.policy .policy.answer -}}
failurePolicy: {{ $answer.failurePolicy }}
timeoutSeconds: {{ int $answer.timeoutSeconds }}
{{- if .policy.podOperation }}
{{- with $chosen }}
# Elsewhere no controller would release the pods that are held.
namespaceSelector:
  {{- . | nindent 2 }}
{{- end }}
objectSelector:
  matchLabels:
    statefulset-scheduling.dev/managed: "true"
rules:
- apiGroups: [""]
  apiVersions: [v1]
  resources: [pods]
  operations: [{{ .policy.podOperation }}]
{{- else }}
namespaceSelector:
  {{- if $chosen }}
  {{- $chosen | nindent 2 }}
  {{- else }}
  matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values:
      {{- append .root.Values.policy.excludedNamespaces .root.Release.Namespace | uniq | toYaml | nindent 6 }}
  {{- end }}
# Only a StatefulSet that has an intent, had one, or carries the binding or the label of one passes here.
matchConditions:
- name: has-or-had-an-intent
  expression: >-
    [object, oldObject].exists(set, set != null && (
    has(set.spec.scheduling)
    || (has(set.metadata.annotations) && (
    "statefulset-scheduling.dev/scheduling" in set.metadata.annotations
    || "statefulset-scheduling.dev/pod-group" in set.metadata.annotations))
    || (has(set.spec.template.metadata) && has(set.spec.template.metadata.labels)
    && "statefulset-scheduling.dev/managed" in set.spec.template.metadata.labels)))
rules:
- apiGroups: [apps]
  apiVersions: [v1]
  resources: [statefulsets]
  operations: [CREATE, UPDATE]
{{- end }}
{{- end }}

{{/* Where NetworkPolicies let out: what controller and webhook call. */}}
{{- define "statefulset-scheduling.egress" -}}
# DNS
- ports:
  - port: 53
    protocol: UDP
  - port: 53
    protocol: TCP
# The API server
- ports:
    {{- range .Values.networkPolicy.apiServerPorts }}
    - port: {{ int . }}
      protocol: TCP
    {{- end }}
  {{- with .Values.networkPolicy.apiServerTo }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
