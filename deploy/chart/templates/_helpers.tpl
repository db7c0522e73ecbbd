{{/* The name of all that is the controller's. It is fixed: there is one installation in a cluster. */}}
{{- define "statefulset-scheduling.controller" -}}
statefulset-scheduling-controller
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

{{/* The policy's settings: only what is not their default, so that an unknown one is never written. */}}
{{- define "statefulset-scheduling.settings" -}}
{{- $settings := dict -}}
{{- with include "statefulset-scheduling.closedGates" . -}}
{{- $_ := set $settings "featureGates" . -}}
{{- end -}}
{{- with include "statefulset-scheduling.carriers" . -}}
{{- $_ := set $settings "carriers" (splitList "," .) -}}
{{- end -}}
{{- $user := printf "system:serviceaccount:%s:%s" .Release.Namespace .Values.serviceAccount.name -}}
{{- if ne $user "system:serviceaccount:statefulset-scheduling-system:statefulset-scheduling-controller" -}}
{{- $_ := set $settings "controllers" (list $user) -}}
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
