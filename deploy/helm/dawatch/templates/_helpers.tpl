{{/* Prefix of the names of all objects, at most 52 characters, so that suffixes fit into the 63 of a label. */}}
{{- define "dawatch.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the pods of a component. Argument: the context and `component`. */}}
{{- define "dawatch.selectorLabels" -}}
app.kubernetes.io/name: {{ default .context.Chart.Name .context.Values.nameOverride }}
app.kubernetes.io/instance: {{ .context.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels of an object. Argument: the context and `component`. */}}
{{- define "dawatch.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .context.Chart.Name .context.Chart.Version | replace "+" "_" }}
{{ include "dawatch.selectorLabels" . }}
app.kubernetes.io/version: {{ .context.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .context.Release.Service }}
{{- end -}}

{{- define "dawatch.image" -}}
{{- $image := .Values.image -}}
{{- $repository := required "image.repository is required: push the image of the Dockerfile to a registry of your cluster" $image.repository -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default .Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "dawatch.serviceAccountName" -}}
{{- default (include "dawatch.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "dawatch.secretName" -}}
{{- default (include "dawatch.fullname" .) .Values.secrets.existing.name -}}
{{- end -}}

{{/* Names of the secrets that a worker reads, as a JSON list: variables, and the files to which its settings refer. */}}
{{- define "dawatch.workerSecrets" -}}
{{- $names := list "DAWATCH_UPSTREAM_API_KEY" "DAWATCH_REDIS_URL" -}}
{{- range $name, $upstream := default dict .Values.settings.upstreams -}}
{{- with (default dict $upstream).api_key_file -}}{{- $names = append $names (base .) -}}{{- end -}}
{{- range $key, $value := default dict (default dict $upstream).headers -}}
{{- if hasSuffix "_file" $key -}}{{- $names = append $names (base (toString $value)) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- range $key, $value := default dict .Values.settings.redis -}}
{{- if hasSuffix "_file" $key -}}{{- $names = append $names (base (toString $value)) -}}{{- end -}}
{{- end -}}
{{- $names | toJson -}}
{{- end -}}

{{/* Names of the secrets to mount, as a JSON list. Argument: the context and `component`. */}}
{{- define "dawatch.secretNames" -}}
{{- $secrets := .context.Values.secrets -}}
{{- $names := ternary $secrets.existing.keys (keys $secrets.values | sortAlpha) (ne $secrets.existing.name "") -}}
{{- if eq .component "worker" -}}
{{- $used := include "dawatch.workerSecrets" .context | fromJsonArray -}}
{{- $all := $names -}}
{{- $names = list -}}
{{- range $all -}}{{- if has . $used -}}{{- $names = append $names . -}}{{- end -}}{{- end -}}
{{- end -}}
{{- $names | toJson -}}
{{- end -}}

{{/* Fails for each secret in the settings, as SECRET_SETTING in src/operations/config defines them. Argument: `tree` and `prefix`. */}}
{{- define "dawatch.refuseSecrets" -}}
{{- $prefix := .prefix -}}
{{- range $key, $value := .tree -}}
{{- $path := printf "%s%s" $prefix $key -}}
{{- if kindIs "map" $value -}}
{{- include "dawatch.refuseSecrets" (dict "tree" $value "prefix" (printf "%s." $path)) -}}
{{- else if and (not (hasSuffix "_file" $path)) (regexMatch "(?:_key|bearer|token|secret|password)$|^channels\\..*(?:url|topic)$|^(?:redis|heartbeat)\\.url$|\\.chain\\.urls$|^upstreams\\.[^.]+\\.headers\\." $path) -}}
{{- fail (printf "settings.%s is a secret: put it under secrets, and set settings.%s_file to the file /run/secrets/dawatch/<name>" $path $path) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The settings file: the settings of the values and those that the chart sets. */}}
{{- define "dawatch.settings" -}}
{{- $settings := deepCopy .Values.settings -}}
{{- $server := default dict $settings.server -}}
{{- if hasKey $settings "database" -}}{{- fail "settings.database is set by the chart: the ledger is on the volume of the server" -}}{{- end -}}
{{- if hasKey $server "host" -}}{{- fail "settings.server.host is set by the chart" -}}{{- end -}}
{{- if hasKey $server "port" -}}{{- fail "settings.server.port is set by the chart; service.port is the port of the Service" -}}{{- end -}}
{{- include "dawatch.refuseSecrets" (dict "tree" $settings "prefix" "") -}}
{{- $urls := list -}}
{{- range $name, $upstream := default dict $settings.upstreams -}}
{{- with (default dict $upstream).url -}}{{- $urls = append $urls . -}}{{- end -}}
{{- end -}}
{{- if not $urls -}}{{- fail "settings.upstreams needs an upstream with a url: settings.upstreams.default.url" -}}{{- end -}}
{{- $own := dict "server" (dict "host" "0.0.0.0" "port" 8080) "database" "/data/dawatch.db" -}}
{{- merge $own $settings | toYaml -}}
{{- end -}}

{{/* The ledger's replica with a further path after its own. Argument: the context and `path`. */}}
{{- define "dawatch.replicaAt" -}}
{{- $replica := deepCopy .context.Values.litestream.replica -}}
{{- if $replica.url -}}
{{- $_ := set $replica "url" (regexReplaceAll "/?([?].*)?$" $replica.url (printf "/%s${1}" .path)) -}}
{{- else -}}
{{- $path := trimSuffix "/" (default "" $replica.path) -}}
{{- $_ := set $replica "path" (ternary .path (printf "%s/%s" $path .path) (empty $path)) -}}
{{- end -}}
{{- toYaml $replica -}}
{{- end -}}

{{/* Seconds that the process gets after SIGTERM: 15 for requests, and ten to close the ledger and its connections. */}}
{{- define "dawatch.shutdownSeconds" -}}25{{- end -}}

{{- define "dawatch.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "dawatch.securityContext" -}}
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities: { drop: [ALL] }
{{- end -}}

{{/* Variables of a container of dawatch. Argument: the context and `component`. */}}
{{- define "dawatch.env" -}}
- name: DAWATCH_CONFIG
  value: /etc/dawatch/dawatch.yaml
{{- range include "dawatch.secretNames" . | fromJsonArray }}
{{- if hasPrefix "DAWATCH_" . }}
- name: {{ . }}_FILE
  value: /run/secrets/dawatch/{{ . }}
{{- end }}
{{- end }}
{{- with .context.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Mounts of a container of dawatch, without the ledger. Argument: the context and `component`. */}}
{{- define "dawatch.mounts" -}}
- name: settings
  mountPath: /etc/dawatch
  readOnly: true
{{- if include "dawatch.secretNames" . | fromJsonArray }}
- name: secrets
  mountPath: /run/secrets/dawatch
  readOnly: true
{{- end }}
- name: tmp
  mountPath: /tmp
{{- end -}}

{{/* Volumes of a pod, without the ledger. Argument: the context and `component`. */}}
{{- define "dawatch.volumes" -}}
- name: settings
  configMap:
    name: {{ include "dawatch.fullname" .context }}
    items: [{ key: dawatch.yaml, path: dawatch.yaml }]
{{- with include "dawatch.secretNames" . | fromJsonArray }}
- name: secrets
  secret:
    secretName: {{ include "dawatch.secretName" $.context }}
    defaultMode: 288 # 0440: the pod's group is fsGroup
    items:
      {{- range . }}
      - { key: {{ . }}, path: {{ . }} }
      {{- end }}
{{- end }}
- name: tmp
  emptyDir: {}
{{- end -}}

{{/* Annotations of a pod: a change of the settings or of the chart's Secret replaces the pod. Argument: the context and `annotations`. */}}
{{- define "dawatch.podAnnotations" -}}
checksum/settings: {{ include "dawatch.settings" .context | sha256sum }}
checksum/secrets: {{ .context.Values.secrets.values | toJson | sha256sum }}
{{- with .annotations }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Where a pod may run. Argument: the values of the component. */}}
{{- define "dawatch.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* Fails for values that contradict each other. */}}
{{- define "dawatch.check" -}}
{{- $secrets := .Values.secrets -}}
{{- if and $secrets.values $secrets.existing.name -}}{{- fail "secrets.values and secrets.existing.name exclude each other" -}}{{- end -}}
{{- if and $secrets.existing.name (not $secrets.existing.keys) -}}{{- fail "secrets.existing.keys is required: the names of the keys of the Secret to mount" -}}{{- end -}}
{{- if and $secrets.existing.keys (not $secrets.existing.name) -}}{{- fail "secrets.existing.name is required for secrets.existing.keys" -}}{{- end -}}
{{- range .Values.extraEnv -}}
{{- if has .name (list "DAWATCH_CONFIG" "DAWATCH_DATABASE" "DAWATCH_HOST" "DAWATCH_PORT") -}}{{- fail (printf "%s is set by the chart" .name) -}}{{- end -}}
{{- end -}}
{{- if .Values.workers.enabled -}}
{{- $names := include "dawatch.secretNames" (dict "context" . "component" "worker") | fromJsonArray -}}
{{- if and (not (has "DAWATCH_REDIS_URL" $names)) (not (hasKey (default dict .Values.settings.redis) "url_file")) -}}{{- fail "workers.enabled requires the secret DAWATCH_REDIS_URL" -}}{{- end -}}
{{- end -}}
{{- if and .Values.litestream.enabled (not .Values.litestream.replica) -}}{{- fail "litestream.replica is required, such as { url: s3://bucket/path }" -}}{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}{{- fail "ingress.host is required" -}}{{- end -}}
{{- end -}}
