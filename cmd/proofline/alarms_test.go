package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/wire"
)

// alarmTime bounds how long an alert may take, on a machine that is busy with other tests.
const alarmTime = 2 * time.Minute

// TestAlarms runs a sale on two servers, with Prometheus and the alerts as shipped. Each fault raises its own alerts
// and no others, and they end when the fault does. With PROOFLINE_TEST_DRAW, the dashboards are drawn for docs/operate.
func TestAlarms(t *testing.T) {
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not installed")
	}
	slow(t)
	database, dir := pgtest.Start(t), tempDir(t)
	setClock := steppedClock(t, database.URL())
	key := newKeyFile(t, dir)
	beaconArgs := []string{"beacon", "serve", "--period", "1s", "--key", filepath.Join(dir, "beacon-key"), "--addr"}
	beacon := launch(t, nil, append(beaconArgs, "127.0.0.1:"+freePort(t))...)
	beacon.listens()
	chain := beacon.until(`chain +([0-9a-f]{64})`, startTime)
	var witnesses []string
	for i := range 3 {
		w, key, address := runWitness(t, fmt.Sprintf("witness%d.example", i), filepath.Join(dir, fmt.Sprint("witness", i)),
			"--addr", "127.0.0.1:0")
		w.stop()
		witnesses = append(witnesses, key+"="+address)
	}
	scraped := []string{"127.0.0.1:" + freePort(t), "127.0.0.1:" + freePort(t)}
	start := func(i int) *process {
		data := filepath.Join(dir, fmt.Sprint("data", i))
		return startServer(t, nil, "--data", data, "--addr", "127.0.0.1:0", "--metrics-addr", scraped[i],
			"--public-url", "https://queue.example.com", "--master-key", key, "--beacon-chain", chain,
			"--beacon-relays", beacon.url, "--witnesses", strings.Join(witnesses, ","),
			"--admin-token-file", filepath.Join(dir, server.TokenFile),
			"--database-url", database.URL()+"&search_path=public,pg_catalog")
	}
	nodes := []*process{start(0), start(1)}
	organizer := manager(t, nodes[0], dir)
	var made wire.Room
	body := `{"slug": "alarms", "windows": [{"length": "2s"}], "outflow": {"per_minute": 600}, "claim": "1m"}`
	if _, err := organizer.Call(t.Context(), http.MethodPost, "/v1/rooms", []byte(body), &made); err != nil {
		t.Fatal(err)
	}
	watch := func(i int) *process {
		_, address, _ := strings.Cut(witnesses[i], "=http://")
		w, _, _ := runWitness(t, "", filepath.Join(dir, fmt.Sprint("witness", i)), "--addr", address, "--log", made.VKey)
		return w
	}
	watching := []*process{watch(0), watch(1), watch(2)}
	halt := make(chan struct{})
	defer close(halt)
	go trickle(nodes[0].url+"/r/alarms", halt)

	p, began := newAlarms(t, program, dir, scraped), time.Now()
	p.become("nothing is wrong")
	time.Sleep(15 * time.Second)
	p.are("nothing is wrong")

	p.become("a server is killed", "ProoflineDown").after(nodes[1].kill)
	p.become("it is back").after(func() { nodes[1] = start(1) })

	frozen := processesOf(t, database.Dir())
	signal := func(s syscall.Signal) {
		for _, pid := range frozen {
			_ = syscall.Kill(pid, s)
		}
	}
	t.Cleanup(func() { signal(syscall.SIGCONT) })
	p.become("the database freezes", "ProoflineDatabaseDown").after(func() { signal(syscall.SIGSTOP) })
	p.become("it continues").after(func() { signal(syscall.SIGCONT) })

	p.become("a witness dies", "ProoflineWitnessDown").after(watching[2].kill)
	p.become("it is back").after(func() { watching[2] = watch(2) })

	_, port, _ := strings.Cut(beacon.url, "://")
	p.become("the beacon is away", "ProoflineBeaconDown", "ProoflineDrawLate").after(beacon.kill)
	p.become("it is back").after(func() { launch(t, nil, append(beaconArgs, port)...).listens() })

	p.become("the database's clock jumps", "ProoflineClockStep").after(func() { setClock(time.Hour) })
	p.become("it is right again").after(func() { setClock(0) })
	if os.Getenv("PROOFLINE_TEST_DRAW") != "" {
		minutes := fmt.Sprint(int(time.Since(began)/time.Minute) + 1)
		draw := exec.CommandContext(t.Context(), "node", "dashboards.mjs", p.url, "alarms", minutes)
		draw.Dir = "../../web/e2e"
		if out, err := draw.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	p.stop()
}

// trickle joins a room five times a second.
func trickle(roomURL string, halt <-chan struct{}) {
	client := &http.Client{Timeout: 20 * time.Second}
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		select {
		case <-halt:
			return
		case <-tick.C:
		}
		if r, err := client.Post(roomURL+"/join", "application/json", strings.NewReader("{}")); err == nil {
			_ = r.Body.Close()
		}
	}
}

// alarms is a Prometheus with the alerts as shipped.
type alarms struct {
	*testing.T
	*process

	what string
	want []string
}

func newAlarms(t *testing.T, program, dir string, targets []string) *alarms {
	t.Helper()
	rules, err := filepath.Abs("../../deploy/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	list, _ := json.Marshal(targets)
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 5s, evaluation_interval: 5s}\nrule_files: [%q]\n"+
		"scrape_configs: [{job_name: proofline, static_configs: [{targets: %s}]}]\n", rules, list)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	address := "127.0.0.1:" + freePort(t)
	p := launchProgram(t, program, nil, "--config.file", config, "--storage.tsdb.path", filepath.Join(dir, "prometheus"),
		"--web.listen-address", address)
	p.url = "http://" + address
	waitFor(t, "Prometheus is ready", func() bool {
		r, err := http.Get(p.url + "/-/ready")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	return &alarms{T: t, process: p}
}

// become says which alerts a fault raises.
func (a *alarms) become(what string, want ...string) *alarms {
	slices.Sort(want)
	a.what, a.want = what, want
	return a
}

// after makes the fault, waits until its alerts fire and no other, and checks that it stays so.
func (a *alarms) after(fault func()) {
	a.Helper()
	fault()
	began := time.Now()
	var shown, firing time.Duration
	for time.Since(began) < alarmTime {
		now := a.get()
		if shown == 0 && len(now) > 0 {
			shown = time.Since(began)
		}
		if slices.Equal(now.firing(), a.want) {
			firing = time.Since(began)
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	if firing == 0 {
		a.Fatalf("%s: %v after %s, want %v", a.what, a.get(), alarmTime, a.want)
	}
	a.Logf("%s: seen after %s, %v after %s", a.what, shown.Round(time.Second/10), a.want, firing.Round(time.Second/10))
	if len(a.want) > 0 {
		time.Sleep(6 * time.Second) // one more evaluation
		a.are(a.what)
	}
}

// are checks which alerts fire.
func (a *alarms) are(what string) {
	a.Helper()
	if now := a.get().firing(); !slices.Equal(now, a.want) {
		a.Errorf("%s: %v, want %v", what, now, a.want)
	}
}

// states are the alerts that are pending or firing.
type states map[string]string

func (s states) firing() []string {
	var list []string
	for name, state := range s {
		if state == "firing" {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

func (a *alarms) get() states {
	a.Helper()
	var answer struct {
		Data struct {
			Result []struct {
				Metric struct{ Alertname, Alertstate string }
			}
		}
	}
	client := &api.Client{Base: a.url}
	query := "/api/v1/query?query=" + url.QueryEscape("ALERTS")
	if _, err := client.Call(a.Context(), http.MethodGet, query, nil, &answer); err != nil {
		a.Fatal(err)
	}
	found := states{}
	for _, r := range answer.Data.Result {
		if found[r.Metric.Alertname] != "firing" {
			found[r.Metric.Alertname] = r.Metric.Alertstate
		}
	}
	return found
}
