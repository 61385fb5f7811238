package server

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.yaml.in/yaml/v3"

	"github.com/proofline/proofline/cmd/proofline/internal/https"
	"github.com/proofline/proofline/internal/doctest"
	"github.com/proofline/proofline/room/meter"
)

var update = flag.Bool("update", false, "write the tables of docs/operate/METRICS.md")

const root = "../../../../"

// description is what [prometheus.Desc.String] says about a metric.
var description = regexp.MustCompile(`fqName: "([^"]+)", help: "((?:[^"\\]|\\.)*)", constLabels: \{\}, variableLabels: \{([^}]*)\}`)

type described struct{ help, labels string }

// metricsOf returns the metrics that collectors may have, by name.
func metricsOf(t *testing.T, from ...prometheus.Collector) map[string]described {
	t.Helper()
	to := make(chan *prometheus.Desc)
	go func() {
		defer close(to)
		for _, c := range from {
			c.Describe(to)
		}
	}()
	all := map[string]described{}
	for d := range to {
		m := description.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("cannot read %s", d)
		}
		all[m[1]] = described{m[2], strings.ReplaceAll(m[3], ",", ", ")}
	}
	return all
}

func ours(t *testing.T) map[string]described {
	return metricsOf(t, metrics{}, meter.New(), (*https.Server)(nil))
}

type rule struct {
	Alert       string
	Expr        string
	Annotations map[string]string
}

func alerts(t *testing.T) []rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	text, err := os.ReadFile(root + "deploy/prometheus/alerts.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	if err != nil || len(file.Groups) != 1 || len(file.Groups[0].Rules) == 0 {
		t.Fatalf("%d groups of alerts: %v", len(file.Groups), err)
	}
	return file.Groups[0].Rules
}

// TestDeployNames checks that alerts and dashboards use metrics that exist.
func TestDeployNames(t *testing.T) {
	t.Parallel()
	known := metricsOf(t, metrics{}, meter.New(), (*https.Server)(nil), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	name := regexp.MustCompile(`\b(?:proofline|process)_\w+`)
	used := map[string]bool{}
	check := func(where, expr string) {
		found := name.FindAllString(expr, -1)
		if len(found) == 0 && !strings.HasPrefix(expr, "up{") {
			t.Errorf("%s: no metric in %q", where, expr)
		}
		for _, n := range found {
			base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(n, "")
			if _, ok := known[base]; !ok {
				t.Errorf("%s: there is no metric %s", where, n)
			}
			used[base] = true
		}
	}
	for _, a := range alerts(t) {
		check(a.Alert, a.Expr)
	}
	dashboards, err := filepath.Glob(root + "deploy/grafana/*.json")
	if err != nil || len(dashboards) != 3 {
		t.Fatalf("%d dashboards: %v", len(dashboards), err)
	}
	for _, path := range dashboards {
		var board struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &board)
		}
		if err != nil || len(board.Panels) == 0 {
			t.Fatalf("%s: %v", path, err)
		}
		for _, p := range board.Panels {
			if len(p.Targets) == 0 {
				t.Errorf("%s: %s shows nothing", path, p.Title)
			}
			for _, target := range p.Targets {
				check(path+": "+p.Title, target.Expr)
			}
		}
	}
	for n := range ours(t) {
		if !used[n] && n != "proofline_rooms_unmeasured" {
			t.Errorf("no dashboard shows %s", n)
		}
	}
}

// TestAlerts runs the alerts' own tests.
func TestAlerts(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed")
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		command := exec.CommandContext(t.Context(), promtool, args...)
		command.Dir = root + "deploy/prometheus"
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	tests, err := os.ReadFile(root + "deploy/prometheus/alerts_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range alerts(t) {
		if !strings.Contains(string(tests), "name: "+a.Alert+"\n") {
			t.Errorf("no test raises %s", a.Alert)
		}
	}
}

// TestMetricsDocs compares the tables of docs/operate/METRICS.md with alerts and metrics; -update writes them.
func TestMetricsDocs(t *testing.T) {
	t.Parallel()
	var rules, names strings.Builder
	rules.WriteString("| alert | what it says |\n|---|---|\n")
	placeholder := regexp.MustCompile(`\{\{ \$(?:labels\.)?(\w+)[^}]*\}\}`)
	for _, a := range alerts(t) {
		fmt.Fprintf(&rules, "| `%s` | %s |\n", a.Alert, placeholder.ReplaceAllString(a.Annotations["description"], "`$1`"))
	}
	names.WriteString("| metric | labels | what it is |\n|---|---|---|\n")
	all := ours(t)
	for _, n := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&names, "| `%s` | %s | %s |\n", n, all[n].labels, all[n].help)
	}
	path := root + "docs/operate/METRICS.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	for section, table := range map[string]string{"alerts": rules.String(), "metrics": names.String()} {
		begin, end := "<!-- "+section+" -->\n", "<!-- /"+section+" -->"
		before, rest, ok := strings.Cut(want, begin)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s has no section %s", path, section)
		}
		want = before + begin + table + end + after
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("%s is out of date: run go test ./cmd/proofline/internal/server -run TestMetricsDocs -update", path)
	}
}

// TestRunbook checks that the runbook has a section for each alert, and for no other.
func TestRunbook(t *testing.T) {
	t.Parallel()
	var want []string
	for _, a := range alerts(t) {
		want = append(want, a.Alert)
	}
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(doctest.Read(t, root+"docs/operate/RUNBOOK.md"), -1) {
		got = append(got, m[1])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sections of the runbook (-alerts +sections):\n%s", diff)
	}
}
