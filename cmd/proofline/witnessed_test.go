package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/load"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/verifier"
)

// runWitness starts a witness, and returns its key and address.
func runWitness(t *testing.T, name, dir string, args ...string) (p *process, key, address string) {
	t.Helper()
	p = launchProgram(t, "proofline-verify", nil, append([]string{"witness", "--name", name, "--dir", dir}, args...)...)
	key = p.until(`key +(\S+)`, startTime)
	return p, key, p.until(`address +(http://\S+)`, startTime)
}

// TestE2EWitnessed runs a sale with a beacon, two witnesses, the server and the
// auditor as separate processes. One witness is killed during the sale and restarted.
func TestE2EWitnessed(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	beacon := launch(t, nil, "beacon", "serve", "--addr", "127.0.0.1:0", "--period", "1s", "--key",
		filepath.Join(dir, "beacon-key"))
	beacon.listens()
	chain := beacon.until(`chain +([0-9a-f]{64})`, startTime)

	var keys, witnesses, dirs []string
	for _, name := range []string{"one.example.org", "two.example.net"} {
		state := filepath.Join(dir, name)
		p, key, address := runWitness(t, name, state, "--addr", "127.0.0.1:0")
		p.stop()
		keys, dirs, witnesses = append(keys, key), append(dirs, state), append(witnesses, key+"="+address)
	}
	p := startServer(t, nil, "--data", filepath.Join(dir, "data"), "--addr", "127.0.0.1:0",
		"--beacon-relays", beacon.url, "--beacon-chain", chain, "--witnesses", strings.Join(witnesses, ","))
	at := []string{"--server", p.url, "--token-file", filepath.Join(dir, "data", server.TokenFile), "--json"}
	var made, ended wire.Room
	runJSON(t, `{"slug": "sale", "windows": [{"length": "1s"}], "outflow": {"per_minute": 30000}, "margin": "5s", "quorum": 2}`,
		&made, append([]string{"room", "create", "-"}, at...)...)
	var running []*process
	restart := func(i int) {
		_, address, _ := strings.Cut(witnesses[i], "=http://")
		w, _, _ := runWitness(t, "", dirs[i], "--addr", address, "--log", made.VKey)
		running = append(running, w)
	}
	restart(0)
	restart(1)
	var crowd load.Report
	runJSON(t, "", &crowd, "load", made.URL, "--visitors", "100", "--rate", "100", "--duration", "50s", "--json")
	running[1].kill()
	restart(1)
	time.Sleep(time.Second) // until the server asks it again
	runJSON(t, "", &crowd, "load", made.URL, "--visitors", "100", "--rate", "100", "--duration", "50s", "--json")
	runJSON(t, "", &ended, append([]string{"room", "end", "sale", "--yes"}, at...)...)
	if ended.Counts.Admitted != 200 {
		t.Errorf("%+v", ended.Counts)
	}
	audit := func(args ...string) *verifier.Report {
		report := &verifier.Report{}
		waitFor(t, "all entries are published", func() bool {
			args := append([]string{"audit", made.URL, "--vkey", made.VKey, "--no-keep", "--json"}, args...)
			stdout, stderr, code := command(t, "", "proofline-verify", args...)
			if err := json.Unmarshal([]byte(stdout), report); err != nil || code != 0 {
				t.Fatalf("audit exits with %d: %v: %s%s", code, err, stdout, stderr)
			}
			return report.Entries >= ended.Size
		})
		return report
	}
	if r := audit("--beacon", chain, "--witness", keys[0], "--witness",
		keys[1]); r.Level != verifier.LevelWitnessed || r.Draws < 2 {
		t.Errorf("with beacon and witnesses: level %d, %d draws, %d witnessed", r.Level, r.Draws, r.Witnessed)
	}
	if r := audit("--beacon", chain, "--witness", keys[0]); r.Level != verifier.LevelUnpredictable {
		t.Errorf("with one witness: level %d", r.Level)
	}
	if r := audit(); r.Level != verifier.LevelConsistent {
		t.Errorf("without beacon and witnesses: level %d", r.Level)
	}
	p.stop()
}
