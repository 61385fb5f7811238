package deploy_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// helm is the program that renders the chart; Go downloads and builds it, which takes minutes the first time.
const helm = "helm.sh/helm/v3/cmd/helm@v3.18.4"

const chartValues = `
publicURL: https://queue.example.com
database: {url: postgres://proofline_server@db/proofline, ownerURL: postgres://proofline_owner@db/proofline, passwordSecret: passwords}
masterKeySecret: master
adminTokenSecret: admin
`

const allValues = chartValues + `
smtpSecret: smtp
imagePullSecrets: [{name: registry}]
trustedProxies: [10.0.0.0/8, 192.168.0.0/16]
witnesses: ["example.org/witness+0123abcd+AQ==https://witness.example.org"]
settings: {PROOFLINE_LIMIT_JOINS: "3000"}
env: [{name: PROOFLINE_OIDC_CLIENT_ID, valueFrom: {secretKeyRef: {name: oidc, key: id}}}]
server:
  {replicas: 3, antiAffinity: required, minAvailable: 2, storageClassName: fast, nodeSelector: {disk: fast},
   tolerations: [{key: sale, operator: Exists}], podAnnotations: {note: hello}}
service: {annotations: {a: b}}
ingress: {enabled: true, className: nginx, tlsSecret: tls, annotations: {c: d}}
metrics: {serviceMonitor: {enabled: true, labels: {release: prometheus}}}
issuer: {enabled: true, config: "url: https://club.example.org\nname: Club\n", secret: oidc, smtpSecret: smtp}
witness: {enabled: true, name: example.org/witness, logs: ["https://queue.example.com/r/sale"]}
`

// manifest is the part of a Kubernetes object that the tests know.
type manifest struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Spec struct {
		Replicas int
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     podSpec
		}
		Selector             map[string]any
		VolumeClaimTemplates []struct{ Metadata struct{ Name string } } `yaml:"volumeClaimTemplates"`
		Ports                []struct {
			Name       string
			TargetPort string `yaml:"targetPort"`
		}
		Rules []struct{ Host string }
	}
}

type podSpec struct {
	SecurityContext struct {
		RunAsNonRoot bool                  `yaml:"runAsNonRoot"`
		RunAsUser    int                   `yaml:"runAsUser"`
		FSGroup      int                   `yaml:"fsGroup"`
		Seccomp      struct{ Type string } `yaml:"seccompProfile"`
	} `yaml:"securityContext"`
	Token      *bool `yaml:"automountServiceAccountToken"`
	Affinity   map[string]any
	Containers []container
	Volumes    []struct {
		Name   string
		Secret struct {
			DefaultMode int `yaml:"defaultMode"`
		}
		Projected struct {
			DefaultMode int `yaml:"defaultMode"`
		}
	}
}

type container struct {
	Name, Image   string
	Command, Args []string
	Env           []struct{ Name, Value string }
	Ports         []struct {
		Name string
		Port int `yaml:"containerPort"`
	}
	Liveness        probe `yaml:"livenessProbe"`
	Readiness       probe `yaml:"readinessProbe"`
	Resources       map[string]map[string]string
	SecurityContext struct {
		ReadOnly     bool  `yaml:"readOnlyRootFilesystem"`
		Escalation   *bool `yaml:"allowPrivilegeEscalation"`
		Capabilities struct{ Drop []string }
	} `yaml:"securityContext"`
	Mounts []struct{ Name, MountPath string } `yaml:"volumeMounts"`
}

type probe struct {
	Get struct{ Path, Port string } `yaml:"httpGet"`
}

// render renders the chart with values.
func render(t *testing.T, values string) (out string, err error) {
	t.Helper()
	if os.Getenv("PROOFLINE_TEST_HELM") == "" {
		slow(t)
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "go", "run", helm, "template", "queue", "helm/proofline", "--values", file,
		"--kube-version", "1.33.0", "--namespace", "tickets")
	var complaint strings.Builder
	c.Stderr = &complaint
	text, err := c.Output()
	if err != nil {
		err = errors.New(complaint.String())
	}
	return string(text), err
}

func manifests(t *testing.T, values string) map[string]manifest {
	t.Helper()
	text, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]manifest{}
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var m manifest
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return all
		} else if err != nil { // also of a key that is there twice
			t.Fatalf("%v\n%s", err, text)
		}
		name := m.Kind + " " + m.Metadata.Name
		if _, twice := all[name]; twice || m.Metadata.Name == "" || m.Metadata.Labels["app.kubernetes.io/instance"] != "queue" {
			t.Errorf("%s is there twice, or has no name or labels", name)
		}
		all[name] = m
	}
}

// TestChart renders the chart with as little and as much as possible.
func TestChart(t *testing.T) {
	t.Parallel()
	small := manifests(t, chartValues)
	all := manifests(t, allValues)
	for name, wanted := range map[string]bool{"StatefulSet queue-proofline": true, "Service queue-proofline": true,
		"Service queue-proofline-servers": true, "PodDisruptionBudget queue-proofline": true, "Ingress queue-proofline": false,
		"ServiceMonitor queue-proofline": false, "StatefulSet queue-proofline-issuer": false,
		"StatefulSet queue-proofline-witness": false, "ConfigMap queue-proofline-issuer": false} {
		if _, ok := small[name]; ok != wanted {
			t.Errorf("%s by default: %t", name, ok)
		}
		if _, ok := all[name]; !ok {
			t.Errorf("no %s with all values", name)
		}
	}
	if host := all["Ingress queue-proofline"].Spec.Rules[0].Host; host != "queue.example.com" {
		t.Errorf("the ingress is for %q", host)
	}
	pods := 0
	for _, set := range []map[string]manifest{small, all} {
		for name, m := range set {
			if m.Kind == "StatefulSet" {
				checkPod(t, name, m)
				pods++
			}
		}
	}
	if pods != 4 {
		t.Errorf("%d kinds of pods, want 4", pods)
	}
}

// checkPod checks that pods run without privileges, and that their commands and variables exist.
func checkPod(t *testing.T, name string, m manifest) {
	t.Helper()
	p := m.Spec.Template.Spec
	s := p.SecurityContext
	if !s.RunAsNonRoot || s.RunAsUser != 65532 || s.FSGroup != 65532 || s.Seccomp.Type != "RuntimeDefault" || p.Token == nil || *p.Token {
		t.Errorf("%s has privileges: %+v", name, s)
	}
	volumes := []string{m.Spec.VolumeClaimTemplates[0].Metadata.Name}
	for _, v := range p.Volumes {
		volumes = append(volumes, v.Name)
		if mode := v.Secret.DefaultMode + v.Projected.DefaultMode; mode != 0 && mode != 0o440 {
			t.Errorf("%s: the secrets in %s have mode %o", name, v.Name, mode)
		}
	}
	for _, c := range p.Containers {
		where := name + ": " + c.Name
		if !c.SecurityContext.ReadOnly || c.SecurityContext.Escalation == nil || *c.SecurityContext.Escalation ||
			!slices.Equal(c.SecurityContext.Capabilities.Drop, []string{"ALL"}) {
			t.Errorf("%s has privileges: %+v", where, c.SecurityContext)
		}
		if c.Liveness.Get.Path == "" || c.Readiness.Get.Path == "" || c.Resources["requests"]["memory"] == "" ||
			c.Resources["limits"]["memory"] == "" || len(c.Ports) == 0 || c.Ports[0].Name != c.Readiness.Get.Port {
			t.Errorf("%s has no probes, ports or resources: %+v", where, c)
		}
		line := append(c.Command, c.Args...)
		if len(c.Command) == 0 {
			line = append([]string{"proofline"}, c.Args...)
		}
		line[0] = filepath.Base(line[0])
		checkFlags(t, where, line)
		for _, v := range c.Env {
			checkVariable(t, where, v.Name, commandOf(line)...)
		}
		for _, mount := range c.Mounts {
			if !slices.Contains(volumes, mount.Name) {
				t.Errorf("%s: there is no volume %s", where, mount.Name)
			}
		}
	}
}

// TestChartRefuses: what is required is named.
func TestChartRefuses(t *testing.T) {
	t.Parallel()
	for missing, values := range map[string]string{
		"publicURL is the address":    strings.Replace(chartValues, "publicURL", "other", 1),
		"masterKeySecret names":       strings.Replace(chartValues, "masterKeySecret", "other", 1),
		"adminTokenSecret names":      strings.Replace(chartValues, "adminTokenSecret", "other", 1),
		"database.url is the address": strings.Replace(chartValues, "{url:", "{other:", 1),
		"witness.name is the name":    chartValues + "witness: {enabled: true}\n",
		"issuer.config is the text":   chartValues + "issuer: {enabled: true}\n",
	} {
		if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("no %q: %v", missing, err)
		}
	}
}
