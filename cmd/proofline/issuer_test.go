package main

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/doctest"
	"github.com/proofline/proofline/internal/freeport"
)

// issuerBench is an issuer in the hands of another organization: the program, its directory, and what it printed.
type issuerBench struct {
	t          *testing.T
	dir, addr  string
	codes      []string
	method     *credential.Verifier
	verifier   note.Verifier
	room       [32]byte
	configured string
}

const issuerRoom = "https://queue.example.com/r/derby"

// newIssuerBench sets an issuer up for a room that no server has.
func newIssuerBench(t *testing.T) *issuerBench {
	t.Helper()
	return newIssuerOf(t, issuerRoom, func(credential.Method) [32]byte { return sha256.Sum256([]byte("a room entry")) })
}

// newIssuerOf sets an issuer up for lane general of a room, which create creates with the method that the program
// prints.
func newIssuerOf(t *testing.T, room string, create func(credential.Method) (entry [32]byte)) *issuerBench {
	t.Helper()
	b := &issuerBench{t: t, dir: t.TempDir()}
	b.addr = freeport.Addr(t)
	b.configured = filepath.Join(b.dir, "issuer.yaml")
	config := fmt.Sprintf("url: http://%s\nname: Example Club\noffers:\n- name: derby\n  method: club\n  kind: signed\n"+
		"  room: %s\n  limit: 5\n  proof: list\n  list: early\n", b.addr, room)
	write := func(text string) {
		if err := os.WriteFile(b.configured, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(config)
	out := filepath.Join(b.dir, "codes.csv")
	b.run("codes", "--list", "early", "--count", "5", "--out", out)
	file, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) != 6 {
		t.Fatal(rows, err)
	}
	for _, row := range rows[1:] {
		b.codes = append(b.codes, row[0])
	}
	lines := strings.Split(b.run("methods", "--config", b.configured), "\n")
	m, err := credential.ParseMethod(strings.TrimPrefix(lines[0], "method "))
	if err != nil {
		t.Fatal(err)
	}
	if b.method, err = credential.NewVerifier(m); err != nil {
		t.Fatal(err)
	}
	if b.verifier, err = note.NewVerifier(strings.TrimPrefix(lines[1], "issued ")); err != nil {
		t.Fatal(err)
	}
	b.room = create(m)
	write(config + fmt.Sprintf("  entry: %x\n", b.room))
	return b
}

func (b *issuerBench) data() string { return filepath.Join(b.dir, "data") }

// run runs a command of the issuer and returns its output.
func (b *issuerBench) run(args ...string) string {
	b.t.Helper()
	out, err := exec.Command("proofline", append(append([]string{"issuer"}, args...), "--data", b.data())...).CombinedOutput()
	if err != nil {
		b.t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (b *issuerBench) start() *process {
	b.t.Helper()
	p := launch(b.t, nil, "issuer", "serve", "--config", b.configured, "--addr", b.addr, "--data", b.data(), "--limit-attempts", "0")
	p.until(`listening on (http://\S+)`, startTime)
	return p
}

func ticketNumber(n int) fairness.Ticket {
	return fairness.NewTicket("queue.example.com/r/derby", sha256.Sum256(fmt.Append(nil, n)))
}

// post sends a form as a browser does, and returns the status, the page and the address of a redirect.
func (b *issuerBench) post(path, origin string, form url.Values) (int, string, string) {
	b.t.Helper()
	r, err := http.NewRequest(http.MethodPost, "http://"+b.addr+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", origin)
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return response.StatusCode, string(body), response.Header.Get("Location")
}

var flowField = regexp.MustCompile(`name="flow" value="([^"]+)"`)

// confirm takes a visitor from the room through the issuer and back, and verifies the credential. It returns the
// status of the last page.
func (b *issuerBench) confirm(ticket fairness.Ticket, code string) int {
	b.t.Helper()
	status, page, _ := b.post("/derby", "https://queue.example.com",
		url.Values{"ticket": {ticket.String()}, "lane": {"general"}, "response": {"fragment"}})
	flow := flowField.FindStringSubmatch(page)
	if status != http.StatusOK || flow == nil {
		b.t.Fatalf("status %d:\n%s", status, page)
	}
	status, page, location := b.post("/derby/prove", "http://"+b.addr,
		url.Values{"flow": {html.UnescapeString(flow[1])}, "field0": {code}})
	if status != http.StatusSeeOther {
		return status
	}
	b.returned(location, page, ticket)
	return status
}

// returned verifies the credential with which a visitor is sent back to the room, and returns it.
func (b *issuerBench) returned(location, page string, ticket fairness.Ticket) credential.Credential {
	b.t.Helper()
	at, fragment, _ := strings.Cut(location, "#")
	values, err := url.ParseQuery(fragment)
	if err != nil || at != issuerRoom {
		b.t.Fatalf("%q, %v:\n%s", location, err, page)
	}
	fields := strings.Split(values.Get("credential"), " ")
	if len(fields) != 3 {
		b.t.Fatalf("credential %q", fields)
	}
	c, err := credential.Parse([]byte(fields[0]), []byte(fields[1]), []byte(fields[2]))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.method.Verify(credential.Subject{Room: b.room, Lane: "general", Ticket: ticket}, c); err != nil {
		b.t.Error(err)
	}
	return c
}

// count returns the line of the signed count.
func (b *issuerBench) count() string {
	b.t.Helper()
	response, err := http.Get("http://" + b.addr + "/issued")
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	n, err := note.Open(text, note.VerifierList(b.verifier))
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.Split(n.Text, "\n")[2]
}

// TestIssuer runs the program as another organization does: it makes codes, vouches for visitors with them, is killed,
// and remembers which codes are used.
func TestIssuer(t *testing.T) {
	t.Parallel()
	b := newIssuerBench(t)
	p := b.start()
	if status := b.confirm(ticketNumber(1), b.codes[0]); status != http.StatusSeeOther {
		t.Fatalf("status %d", status)
	}
	if status := b.confirm(ticketNumber(2), b.codes[0]); status != http.StatusConflict {
		t.Errorf("a code for a second place: status %d", status)
	}
	if status := b.confirm(ticketNumber(2), "0000-0000-0000-0000"); status != http.StatusForbidden {
		t.Errorf("no code: status %d", status)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	statuses := map[int]int{}
	for n := range 8 {
		wg.Go(func() {
			status := b.confirm(ticketNumber(10+n), b.codes[1])
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		})
	}
	wg.Wait()
	if statuses[http.StatusSeeOther] != 1 || statuses[http.StatusConflict] != 7 {
		t.Errorf("eight visitors with one code: %v", statuses)
	}
	if out, err := exec.Command("proofline", "issuer", "serve", "--config", b.configured, "--data", b.data()).CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "in use by another process") {
		t.Errorf("a second program with the same directory: %v\n%s", err, out)
	}
	p.kill()

	p = b.start()
	if status := b.confirm(ticketNumber(3), b.codes[0]); status != http.StatusConflict {
		t.Errorf("a used code after a crash: status %d", status)
	}
	if status := b.confirm(ticketNumber(1), b.codes[0]); status != http.StatusSeeOther {
		t.Errorf("the same request after a crash: status %d", status)
	}
	if got, want := b.count(), fmt.Sprintf("derby club %x 2 5", b.room); got != want {
		t.Errorf("count %q, want %q", got, want)
	}
	p.stop()
	for _, code := range b.codes {
		if strings.Contains(p.said(), code) {
			t.Error("the log has a code")
		}
	}
	_ = filepath.WalkDir(b.data(), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || strings.Contains(string(text), b.codes[0]) || strings.Contains(string(text), ticketNumber(1).String()) {
			t.Errorf("%s has a code or a ticket, %v", path, err)
		}
		return nil
	})
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([a-z]+)" value="([^"]*)">`)

// TestIssuerOfRoom opens a room with the method that an issuer prints, and sends a visitor there and back by forms. The
// auditor's program accepts the room.
func TestIssuerOfRoom(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	server := startServer(t, nil, "--data", dir, "--addr", "127.0.0.1:0")
	room := server.url + "/r/derby"
	b := newIssuerOf(t, room, func(m credential.Method) (entry [32]byte) {
		config := map[string]any{"slug": "derby", "beacon": "none", "methods": []any{m}, "windows": []any{map[string]any{"length": "24h"}},
			"lanes": []any{map[string]any{"name": "general", "weight": 1, "needs": []string{m.Name}}}}
		text, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := manager(t, server, dir).Call(t.Context(), http.MethodPost, "/v1/rooms", text, &struct{}{}); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("proofline", "issuer", "room", room).CombinedOutput()
		found := regexp.MustCompile(`(?m)^entry ([0-9a-f]{64})$`).FindSubmatch(out)
		if err != nil || found == nil {
			t.Fatalf("%v: %s", err, out)
		}
		if _, err := hex.Decode(entry[:], found[1]); err != nil {
			t.Fatal(err)
		}
		return entry
	})
	issuer := b.start()
	secret := sha256.Sum256([]byte("a visitor"))
	ticket := fairness.NewTicket(strings.TrimPrefix(room, "http://"), secret)
	status, page, _ := b.post("/derby", server.url, url.Values{"ticket": {ticket.String()}, "lane": {"general"}})
	flow := flowField.FindStringSubmatch(page)
	if status != http.StatusOK || flow == nil {
		t.Fatalf("status %d:\n%s", status, page)
	}
	status, page, _ = b.post("/derby/prove", "http://"+b.addr, url.Values{"flow": {html.UnescapeString(flow[1])}, "field0": {b.codes[0]}})
	form := url.Values{}
	for _, field := range hiddenField.FindAllStringSubmatch(page, -1) {
		form.Set(field[1], field[2])
	}
	if status != http.StatusOK || !strings.Contains(page, `action="`+room+`/credential"`) {
		t.Fatalf("status %d:\n%s", status, page)
	}
	response, err := http.PostForm(room+"/credential", form)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if got := response.Request.URL.String(); response.StatusCode != http.StatusOK || got != room {
		t.Errorf("status %d at %s, want the room's page", response.StatusCode, got)
	}
	if _, err := manager(t, server, dir).Call(t.Context(), http.MethodPost, "/v1/rooms/derby/end", nil, &struct{}{}); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("proofline-verify", "audit", room, "--no-keep").CombinedOutput()
	if err != nil || !strings.Contains(strings.Join(strings.Fields(string(out)), " "), "club was shown by 1 ticket: ") {
		t.Errorf("audit: %v\n%s", err, out)
	}
	issuer.stop()
	server.stop()
}

// TestIssuerReadme runs the commands of the issuer's README, in order.
func TestIssuerReadme(t *testing.T) {
	t.Parallel()
	const readme = "../../web/issuer/README.md"
	dir := tempDir(t)
	data := filepath.Join(dir, "server")
	server := startServer(t, nil, "--data", data, "--addr", "127.0.0.1:0")
	_, err := manager(t, server, data).Call(t.Context(), http.MethodPost, "/v1/rooms", []byte(`{"slug": "derby", "beacon": "none",
		"methods": [{"name": "presale", "kind": "signed", "key": "own"}, {"name": "club", "kind": "signed", "key": "own"}]}`), &struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"issuer.yaml": doctest.Blocks(t, readme, "yaml")[0], "oidc-secret": "a secret", "captcha-secret": "a secret",
		"members.csv": "number,birthday\n1,1990-01-02\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	here := strings.NewReplacer("bin/proofline", "proofline", "https://queue.example.com", server.url, "./proofline-data", data)
	ran := 0
	for _, block := range doctest.Blocks(t, readme, "sh") {
		for _, line := range doctest.Commands(block) {
			args := strings.Fields(here.Replace(line))
			switch {
			case args[1] == "room":
				args = append(args, "--data", data)
			case args[1] == "serve":
				args = append(args, "--data", filepath.Join(dir, "another"), "--beacon-relays", "none")
			case args[2] != "room" && !slices.Contains(args, "--data"):
				args = append(args, "--data", filepath.Join(dir, "issuer"))
			}
			if ran++; slices.Contains(args[1:3], "serve") {
				p := &process{t: t, exited: make(chan error, 1), cmd: exec.Command(args[0], append(args[1:], "--addr", "127.0.0.1:0")...)}
				p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, p, p
				if err := p.cmd.Start(); err != nil {
					t.Fatal(err)
				}
				go func() { p.exited <- p.cmd.Wait() }()
				t.Cleanup(p.kill)
				p.listens()
				p.stop()
				continue
			}
			c := exec.Command(args[0], args[1:]...)
			c.Dir = dir
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", line, err, out)
			}
		}
	}
	if ran != 9 {
		t.Errorf("%d commands in the README", ran)
	}
	server.stop()
}
