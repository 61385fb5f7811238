package main

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/internal/doctest"
)

const connectorDocs = "../../connector/"

// documented is a test setup that runs the commands in the connectors' documents.
type documented struct {
	*testing.T
	dir   string // working directory of commands
	queue *process
	env   []string
	here  *strings.Replacer
	proxy *process // in front of the shop
}

// newDocumented starts a shop, and a server with the documents' room.
func newDocumented(t *testing.T) *documented {
	t.Helper()
	dir := tempDir(t)
	data := filepath.Join(dir, "data")
	d := &documented{T: t, dir: dir, queue: startServer(t, nil, "--data", data, "--addr", "127.0.0.1:0")}
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "shop")
	}))
	t.Cleanup(shop.Close)
	d.env = append(os.Environ(), "PROOFLINE_SERVER="+d.queue.url, "PROOFLINE_DATA="+data, "STATE_DIRECTORY="+dir,
		"CREDENTIALS_DIRECTORY="+dir, "XDG_STATE_HOME="+dir)
	d.here = strings.NewReplacer(
		"https://queue.example.com", d.queue.url, "http://127.0.0.1:3000", shop.URL, "/usr/local/bin/proofline", "proofline",
		"/etc/proofline/", dir+"/", "/etc/ssl/certs/", dir+"/", "/etc/ssl/private/", dir+"/",
		"127.0.0.1:8099", "127.0.0.1:0", "127.0.0.1:9102", "127.0.0.1:0", " :8081", " 127.0.0.1:0", " :443", " 127.0.0.1:0", " :80", " 127.0.0.1:0",
	)
	_, err := manager(t, d.queue, data).Call(t.Context(), http.MethodPost, "/v1/rooms",
		[]byte(`{"slug": "sale", "beacon": "none", "targets": ["https://shop.example.com/"], "signed_return": true}`), &struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	d.write("rules.json", doctest.Blocks(t, connectorDocs+"README.md", "json")[0])
	d.run("proofline site apply shop rules.json")
	return d
}

// write writes a file that a document shows.
func (d *documented) write(name, text string) {
	d.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(d.here.Replace(text)), 0o600); err != nil {
		d.Fatal(err)
	}
}

// run runs a command to its end, and returns its output.
func (d *documented) run(line string, env ...string) string {
	d.Helper()
	cmd := exec.CommandContext(d.Context(), "sh", "-euc", d.here.Replace(line))
	cmd.Dir, cmd.Env = d.dir, append(slices.Clone(d.env), env...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		d.Errorf("$ %s\n%s%s%v", line, out, complaint.String(), err)
	}
	return strings.TrimSpace(string(out))
}

// start starts a proxy with a document's command, and returns its address.
func (d *documented) start(line string, env ...string) *process {
	d.Helper()
	p := &process{t: d, exited: make(chan error, 1), cmd: exec.Command("sh", "-euc", "exec "+d.here.Replace(line))}
	p.cmd.Dir, p.cmd.Env = d.dir, append(slices.Clone(d.env), env...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		d.Fatal(err)
	}
	go func() { p.exited <- p.cmd.Wait() }()
	d.Cleanup(p.kill)
	p.url = p.until(`listening on (https?://\S+)`, startTime)
	return p
}

// ask sends a request for a page of the shop to a proxy.
func (d *documented) ask(p *process, path string, headers ...string) (status int, location, body string) {
	d.Helper()
	r, err := http.NewRequestWithContext(d.Context(), http.MethodGet, p.url+path, nil)
	if err != nil {
		d.Fatal(err)
	}
	r.Host = "shop.example.com"
	for _, h := range append([]string{"Accept: text/html"}, headers...) {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		d.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		d.Fatal(err)
	}
	return answer.StatusCode, answer.Header.Get("Location"), string(text)
}

// guards checks that a proxy sends requests to the room if the rules queue them, and
// no others.
func (d *documented) guards(p *process) {
	d.Helper()
	if status, _, body := d.ask(p, "/"); status != http.StatusOK || body != "shop" {
		d.Errorf("%q: status %d, %q", p.cmd.Args, status, body)
	}
	if status, location, _ := d.ask(p, "/tickets"); status != http.StatusFound ||
		!strings.HasPrefix(location, d.queue.url+"/r/sale?to=") {
		d.Errorf("%q: status %d to %q", p.cmd.Args, status, location)
	}
}

// judges checks the responses of a proxy with --auth-only.
func (d *documented) judges(p *process) {
	d.Helper()
	for path, want := range map[string]int{"/": http.StatusNoContent, "/tickets": http.StatusUnauthorized} {
		if status, _, body := d.ask(p, "/.proofline/auth", "X-Original-Method: GET", "X-Original-URI: "+path,
			"X-Forwarded-Host: shop.example.com"); status != want {
			d.Errorf("%q: %s: status %d, want %d: %s", p.cmd.Args, path, status, want, body)
		}
	}
}

// TestConnectorDocs runs the commands in the connectors' documents with a real server
// and a shop.
func TestConnectorDocs(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"sh", "curl", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program, "is not on this machine")
		}
	}
	d := newDocumented(t)
	d.write("token", d.run("proofline token create first --scope connect"))
	d.proxy = d.start("proofline proxy --rules rules.json --to http://127.0.0.1:3000 --listen :8081")
	for _, document := range []string{"README.md", "proxy/README.md", "nginx/README.md", "edge/README.md"} {
		for _, block := range doctest.Blocks(t, connectorDocs+document, "sh") {
			for _, line := range doctest.Commands(block) {
				d.follow(line)
			}
		}
	}
	d.units()
	d.scripts()
	d.reports()
	d.queue.stop()
}

// follow runs a document's command and checks its effect.
func (d *documented) follow(line string) {
	d.Helper()
	switch {
	case strings.HasPrefix(line, "proofline proxy --auth-only"):
		d.judges(d.start(line))
	case strings.HasPrefix(line, "proofline proxy"):
		d.guards(d.start(line))
	case strings.HasPrefix(line, "proofline connector check"):
		if out := d.run(line); !strings.Contains(out, `/tickets: queue, room sale (rule "tickets")`) {
			d.Errorf("%s\n%s", line, out)
		}
	case strings.HasPrefix(line, "proofline token create"):
		d.run(line)
		if text := doctest.Read(d, filepath.Join(d.dir, "token")); len(text) < 30 {
			d.Errorf("%s: the token is %q", line, text)
		}
	case strings.HasPrefix(line, "curl -sI "):
		d.look(line)
	case strings.HasPrefix(line, "curl -X POST "):
		if out := d.run(strings.ReplaceAll(line, "https://shop.example.com",
			"-sS -w '%{http_code}' -H 'Host: shop.example.com' "+d.proxy.url), "COOKIE=a=b"); out != "204" {
			d.Errorf("%s\n%s", line, out)
		}
	case strings.HasPrefix(line, "curl "):
		if out := d.run(line+" -sS --fail-with-body",
			"TOKEN="+strings.TrimSpace(doctest.Read(d,
				filepath.Join(d.dir, "token")))); !strings.HasPrefix(out, "proofline-rules/v1\nshop\n1\n{") {
			d.Errorf("%s\n%s", line, out)
		}
	case strings.HasPrefix(line, "openssl "):
		if out := d.run(line); len(out) != 64 {
			d.Errorf("%s\n%s", line, out)
		}
	case strings.HasPrefix(line, "npx wrangler "), strings.HasPrefix(line, "cd connector/edge && npm "):
		// Commands of other programs, which the module's own tests run.
	default:
		d.Errorf("no check for the command %q", line)
	}
}

// look runs a document's curl command for the header of a page of the shop.
func (d *documented) look(line string) {
	d.Helper()
	want := "HTTP/1.1 200 "
	if strings.HasSuffix(line, "/tickets") {
		want = "HTTP/1.1 302 "
	}
	out := d.run(strings.ReplaceAll(line, "https://shop.example.com", "-H 'Host: shop.example.com' "+d.proxy.url))
	if leads := strings.Contains(out, "Location: "+d.queue.url+"/r/sale?to="); !strings.HasPrefix(out, want) ||
		leads != strings.Contains(want, "302") {
		d.Errorf("%s\n%s", line, out)
	}
}

// Lines of a systemd unit: the command that it starts, and the variables that it sets.
var (
	unitStarts    = regexp.MustCompile(`(?m)^ExecStart=(.*)$`)
	unitVariables = regexp.MustCompile(`(?m)^Environment=(\w+)=`)
)

// units runs the commands of the systemd units.
func (d *documented) units() {
	d.Helper()
	d.run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout shop.key -out shop.pem -days 2 -subj /CN=shop.example.com 2>&1")
	env := []string{"PROOFLINE_SITE_KEY=" + d.run("proofline site key")}
	for i, unit := range doctest.Blocks(d, connectorDocs+"proxy/README.md", "ini") {
		unit = strings.ReplaceAll(unit, "\\\n", " ")
		starts := unitStarts.FindStringSubmatch(unit)
		if starts == nil {
			d.Fatalf("unit %d starts nothing", i)
		}
		if i == 0 {
			if v := unitVariables.FindStringSubmatch(unit); v == nil || !strings.HasPrefix(env[0], v[1]+"=") {
				d.Errorf("the unit sets %q, not the site key", v)
			}
			d.guards(d.start(starts[1], env...))
			files, _ := filepath.Glob(filepath.Join(d.dir, "connector-rules-*"))
			if len(files) != 1 || !strings.HasPrefix(doctest.Read(d, files[0]), "proofline-rules/v1\n") {
				d.Errorf("kept: %q", files)
			}
		} else {
			d.judges(d.start(starts[1]))
		}
	}
}

// scripts compares the response to a script with the one in its document.
func (d *documented) scripts() {
	d.Helper()
	var shown, told map[string]string
	if err := json.Unmarshal([]byte(d.here.Replace(doctest.Blocks(d, connectorDocs+"client/README.md", "json")[0])),
		&shown); err != nil {
		d.Fatal(err)
	}
	status, _, body := d.ask(d.proxy, "/tickets", "Sec-Fetch-Mode: cors", "Referer: http://shop.example.com/cart")
	if err := json.Unmarshal([]byte(body), &told); err != nil || status != http.StatusForbidden {
		d.Fatalf("status %d, %v: %s", status, err, body)
	}
	join, ok := strings.CutSuffix(shown["join"], "...")
	if !ok || !strings.HasPrefix(told["join"], join+url.QueryEscape("http://shop.example.com/cart")) {
		d.Errorf("join at %q, but the document shows %q", told["join"], shown["join"])
	}
	delete(shown, "join")
	delete(told, "join")
	if !maps.Equal(shown, told) {
		d.Errorf("a script gets %v, but the document shows %v", told, shown)
	}
	for _, block := range doctest.Blocks(d, connectorDocs+"client/README.md", "html") {
		source := regexp.MustCompile(`src="([^"]+)"`).FindStringSubmatch(block)
		if status, _, body := d.ask(d.proxy, source[1]); status != http.StatusOK ||
			!strings.Contains(body, "proofline:queue") {
			d.Errorf("%s: status %d", source[1], status)
		}
	}
}

// reports sends the report that FORMAT.md shows.
func (d *documented) reports() {
	d.Helper()
	var sent, shown string
	for _, block := range doctest.Blocks(d, connectorDocs+"rules/FORMAT.md", "json") {
		switch {
		case strings.HasPrefix(block, `{"node"`):
			sent = d.here.Replace(block)
		case strings.HasPrefix(block, `{"rooms"`):
			shown = d.here.Replace(block)
		}
	}
	for strings.Contains(sent, `"ID"`) {
		sent = strings.Replace(sent, `"ID"`, `"`+base64.RawURLEncoding.EncodeToString([]byte(rand.Text())[:16])+`"`, 1)
	}
	token := strings.TrimSpace(doctest.Read(d, filepath.Join(d.dir, "token")))
	var told, want struct{ Rooms []map[string]any }
	if _, err := (&api.Client{Base: d.queue.url, Token: token}).Call(d.Context(), http.MethodPost,
		"/v1/connectors/report", []byte(sent), &told); err != nil {
		d.Fatal(err)
	}
	if err := json.Unmarshal([]byte(shown), &want); err != nil || len(told.Rooms) != 1 || len(want.Rooms) != 1 {
		d.Fatalf("%v: got %v, the document shows %v", err, told, want)
	}
	for name, value := range want.Rooms[0] {
		if other, ok := told.Rooms[0][name]; !ok || reflect.TypeOf(other) != reflect.TypeOf(value) {
			d.Errorf("the server sends %s %v, but the document shows %v", name, other, value)
		}
	}
	format := doctest.Read(d, connectorDocs+"rules/FORMAT.md")
	for name := range told.Rooms[0] {
		if !strings.Contains(format, "`"+name+"`") && !strings.Contains(format, `"`+name+`"`) {
			d.Errorf("FORMAT.md does not have %s", name)
		}
	}
}

// ourCommand matches one of our programs with its arguments.
var ourCommand = regexp.MustCompile(`(?:^|[\s;&|(])(?:bin/)?(proofline(?:-verify)?)((?:[ \t]+[^\s;&|<>()]+)*)`)

// ourName matches our name where another program takes it as the name of a container or of a signer.
var ourName = regexp.MustCompile(`(?:--name|-I|exec) proofline\b`)

// TestCommandsOfDocs checks all commands of our programs in all documents: each
// command exists and has the given flags.
func TestCommandsOfDocs(t *testing.T) {
	t.Parallel()
	lines := map[string]string{} // their documents, by command
	for _, document := range doctest.Documents(t, "../..") {
		text := doctest.Read(t, document)
		var candidates []string
		for _, b := range doctest.All(text) {
			if b.Language == "sh" {
				candidates = append(candidates, doctest.Commands(b.Text)...)
			}
		}
		for _, s := range doctest.Spans(text) {
			if strings.HasPrefix(s, "proofline") || strings.HasPrefix(s, "bin/proofline") {
				candidates = append(candidates, s)
			}
		}
		for _, c := range candidates {
			for _, found := range ourCommand.FindAllStringSubmatch(ourName.ReplaceAllString(c, ""), -1) {
				lines[found[1]+found[2]] = document
			}
		}
	}
	if len(lines) < 30 {
		t.Errorf("only %d commands", len(lines))
	}
	for line, document := range lines {
		words := strings.Fields(line)
		stdout, stderr, code := command(t, "", words[0], append(words[1:], "--help")...)
		if code != 0 {
			t.Errorf("%s: %s\n%s", document, line, stderr)
		}
		if _, more, isGroup := strings.Cut(stdout, "\nUsage:\n  "); isGroup &&
			strings.Contains(stdout, "\nAvailable Commands:\n") && len(words) > 1 {
			usage, _, _ := strings.Cut(more, " [")
			if rest := strings.TrimPrefix(line, usage); strings.TrimSpace(rest) != "" &&
				!strings.HasPrefix(strings.TrimSpace(rest), "-") {
				t.Errorf("%s: %s: no such command", document, line)
			}
		}
	}
}
