{{- define "proofline.name" -}}
{{- if contains "proofline" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-proofline{{ end -}}
{{- end }}

{{- define "proofline.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* The labels of a part: takes the list of root and part. */ -}}
{{- define "proofline.selector" -}}
app.kubernetes.io/name: proofline
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "proofline.labels" -}}
{{ include "proofline.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ (index . 0).Chart.Name }}-{{ (index . 0).Chart.Version }}
{{- end }}

{{- /* What all pods have. */ -}}
{{- define "proofline.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
{{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* What all containers have. */ -}}
{{- define "proofline.container" -}}
image: {{ include "proofline.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{- /* A volume of a StatefulSet: takes the list of root, part and the part's values. */ -}}
{{- define "proofline.claim" -}}
- metadata:
    name: data
    labels:
      {{- include "proofline.selector" . | nindent 6 }}
  spec:
    accessModes: [ReadWriteOnce]
    {{- with (index . 2).storageClassName }}
    storageClassName: {{ . | quote }}
    {{- end }}
    resources:
      requests:
        storage: {{ (index . 2).storage }}
{{- end }}
