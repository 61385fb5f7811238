package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/internal/doctest"

	"github.com/proofline/proofline/cmd/proofline/internal/load"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/verifier"
)

// TestE2E runs a sale from the command line: serve, room create, load, audit, and a
// graceful stop.
func TestE2E(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	p := startServer(t, nil, "--data", dir, "--addr", "127.0.0.1:0")
	at := []string{"--server", p.url, "--token-file", filepath.Join(dir, server.TokenFile), "--json"}
	var made, ended wire.Room
	var crowd load.Report
	runJSON(t, `{"slug": "e2e", "title": "A sale", "windows": [{"length": "1s"}], "outflow": {"per_minute": 30000}, "claim": "1m"}`,
		&made, append([]string{"room", "create", "-"}, at...)...)
	var found struct {
		Rooms []struct{ URL string } `json:"rooms"`
	}
	runJSON(t, "", &found, "room", "list", "--data", dir, "--json") // reads the port from the directory
	if len(found.Rooms) != 1 || found.Rooms[0].URL != made.URL {
		t.Errorf("--data alone finds %+v, want %s", found, made.URL)
	}
	runJSON(t, "", &crowd, "load", filepath.Base(made.URL), "--data", dir, "--visitors", "400", "--rate", "200",
		"--duration", "50s", "--json")
	if crowd.Joined != 400 || crowd.Admitted != 400 || len(crowd.Errors) != 0 {
		t.Errorf("the crowd: %+v", crowd)
	}
	runJSON(t, "", &ended, append([]string{"room", "end", "e2e", "--yes"}, at...)...)
	if n := ended.Counts; ended.Phase != "ended" || n.Arrivals != 400 || n.Admitted != 400 {
		t.Errorf("the room ends as %s with %+v", ended.Phase, n)
	}
	report := auditUntil(t, made.URL, made.VKey, ended.Size)
	if report.Arrivals != 400 || report.Admissions != 400 || report.Assignments != 400 {
		t.Errorf("the audit counts %+v", report)
	}
	p.stop()
}

// runJSON runs a command and decodes the JSON that it prints.
func runJSON(t testing.TB, stdin string, result any, args ...string) {
	t.Helper()
	stdout, stderr, code := proofline(t, stdin, args...)
	if code != 0 {
		t.Fatalf("proofline %q exits with %d: %s", args, code, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), result); err != nil {
		t.Fatalf("proofline %q: %v: %s", args, err, stdout)
	}
}

// auditUntil audits a room once its newest entries are published, and checks that
// the audit passes.
func auditUntil(t testing.TB, url, vkey string, size uint64) *verifier.Report {
	t.Helper()
	report := &verifier.Report{}
	waitFor(t, "all entries are published", func() bool {
		stdout, stderr, code := command(t, "", "proofline-verify", "audit", url, "--vkey", vkey, "--no-keep", "--json")
		if err := json.Unmarshal([]byte(stdout), report); err != nil {
			t.Fatalf("audit exits with %d: %v: %s%s", code, err, stdout, stderr)
		}
		if code != 0 || !report.OK {
			t.Fatalf("audit exits with %d: %s", code, stdout)
		}
		return report.Entries >= size
	})
	if report.Entries != size {
		t.Errorf("the audit reads %d entries, the room has %d", report.Entries, size)
	}
	return report
}

// TestE2EDemo runs a small demo, and audits the room that it leaves running.
func TestE2EDemo(t *testing.T) {
	t.Parallel()
	p := launch(t, nil, "demo", "--visitors", "200", "--keep")
	p.until(`(Server and data stay) until you press Ctrl-C\.`, 2*time.Minute)
	said := p.said()
	for _, want := range []string{
		`(?m)^  visitors +200 joined`, `(?m)^✓ VERIFIED, level 3`, `(?m)^  admitted +176,`, `(?m)^  no-shows +24 `,
		`The verifier exits with 1`, `A shop opens behind proofline proxy, on http://127`, `None of them reaches the shop`,
		`60 wanted a seat`, `all four agree`, `(?m)^✓ Everything was as expected\.$`,
	} {
		if !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("the demo does not say %q:\n%s", want, said)
		}
	}
	complaints := regexp.MustCompile(`.*assets are not built.*`).ReplaceAllString(said,
		"") // the demo works without them
	if strings.Contains(complaints, "✗ unexpected") || strings.Contains(complaints, "level=") {
		t.Errorf("the demo reports a problem:\n%s", said)
	}
	report := &verifier.Report{}
	url := p.until(`  proofline-verify audit (\S+)`, time.Second)
	stdout, stderr, code := command(t, "", "proofline-verify", "audit", url, "--no-keep", "--json")
	if err := json.Unmarshal([]byte(stdout), report); err != nil || code != 0 || report.Arrivals != 200 {
		t.Errorf("the audit after the demo exits with %d: %v: %s%s", code, err, stdout, stderr)
	}
	p.stop()
	dir := p.until(`The data is in (\S+)\.`, time.Second)
	t.Cleanup(func() { removeAll(t, dir) })
	if _, err := os.Stat(filepath.Join(dir, server.TokenFile)); err != nil {
		t.Errorf("the data was not kept: %v", err)
	}
}

// TestE2EDemoShop opens the shop for a browser: its front page is open, and its
// tickets redirect to the room.
func TestE2EDemoShop(t *testing.T) {
	t.Parallel()
	p := launch(t, nil, "demo", "--shop")
	shop := p.until(`  (http://localhost:\d+)  the shop.*`, startTime)
	room := p.until(`  (http://\S+)  its line`, time.Second)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for path, want := range map[string]string{"": "", "/tickets": room + "?to=" + url.QueryEscape(shop+"/tickets")} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, shop+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/html")
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		got, _, isSigned := strings.Cut(resp.Header.Get("Location"), "&to_sig=")
		if got != want || isSigned != (want != "") || want == "" && resp.StatusCode != http.StatusOK {
			t.Errorf("%q is answered with %d and redirected to %q, signed %t, want %q",
				path, resp.StatusCode, got, isSigned, want)
		}
	}
	p.until(`.*(The first shopper) is back in the shop.*`, time.Minute)
	if said := p.said(); strings.Contains(said, "✗ unexpected") || strings.Contains(said, "level=") {
		t.Errorf("the demo reports a problem:\n%s", said)
	}
	p.stop()
}

// TestE2EDemoBots rehearses a small attack: with an open door the script gets as many places as its networks may have,
// and with one that needs an account or a code at most as many as it has of these. The README explains the table in the
// same words.
func TestE2EDemoBots(t *testing.T) {
	t.Parallel()
	p := launch(t, nil, "demo", "--bots", "--visitors", "300")
	p.until(`(✓ Everything was as expected)\.`, 2*time.Minute)
	said := p.said()
	for _, want := range []string{
		`(?m)^  its places in line, from +one /24 +one /48 +30 networks$`, `(?m)^    nothing +5 +5 +30$`,
		`(?m)^    work of 8 bits +5 +5 +30$`, `(?m)^    an account; the script has 10 +5 +5 +10$`,
		`(?m)^    a code; the script bought 1 +1 +1 +1$`, `(?m)^  its share of the first 30 places, from +one /24`,
		`(?m)^    nothing +\d+\.\d% +\d+\.\d% +\d+\.\d%$`, `(?m)^    an account; the script has 10 +\d+\.\d% +\d+\.\d% +\d+\.\d%$`,
		`replayed accounts-many: level 3, \d+ people, 10 tickets of the script`, `replayed open-v4: level 3, \d+ people, 5 tickets`,
		`To join the lane general, a ticket had to show: work\.`, `To join the lane general, a ticket had to show: account\.`,
		`account was shown by \d+ tickets: the word of the issuer`, `code was shown by \d+ tickets: the word of the issuer`,
		`No nullifier was used twice`,
	} {
		if !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("the demo does not say %q:\n%s", want, said)
		}
	}
	words := said[max(strings.LastIndex(said, "a code; the script bought"), 0):]
	_, words, _ = strings.Cut(words, "\n\n")
	words, _, _ = strings.Cut(words, "\n\n")
	readme := strings.Join(strings.Fields(doctest.Read(t, "../../README.md")), " ")
	if words = strings.Join(strings.Fields(words), " "); len(words) < 100 || !strings.Contains(readme, words) {
		t.Errorf("the README does not say what the demo says under its table: %q", words)
	}
	if strings.Contains(said, "✗ unexpected") || strings.Contains(said, "level=") {
		t.Errorf("the demo reports a problem:\n%s", said)
	}
}

// TestE2EDemoWithoutVerifier: without the verifier the demo fails at once, with a
// hint.
func TestE2EDemoWithoutVerifier(t *testing.T) {
	lonely := t.TempDir()
	self, err := os.ReadFile(lookPath(t, "proofline"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(lonely, "proofline"), self, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", lonely)
	_, stderr, code := command(t, "", filepath.Join(lonely, "proofline"), "demo")
	if code != 1 || !strings.Contains(stderr, "proofline-verify") ||
		!strings.Contains(stderr, "hint: build both programs: make build") {
		t.Errorf("demo exits with %d and says %q", code, stderr)
	}
}
