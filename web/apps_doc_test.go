package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/connector"
	"github.com/proofline/proofline/connector/rules"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/internal/wire"
)

func readDoc(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// towards redirects connections for the server's public address to the test server.
type towards struct{ address string }

func (to towards) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(r.URL.String(), publicURL) {
		return nil, fmt.Errorf("unexpected request to %s", r.URL)
	}
	u, err := url.Parse(to.address + strings.TrimPrefix(r.URL.String(), publicURL))
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL = u
	return http.DefaultTransport.RoundTrip(r)
}

// newShop opens a shop with an API for apps, behind a connector. Its certificate
// is in the file.
func newShop(t *testing.T, s *site, slug string) (address, certificate string) {
	t.Helper()
	queue, err := rules.Parse([]byte(`{"version":1,"rooms":{"sale":{"url":"` + publicURL + `/r/` + slug + `"}},"rules":[{"name":"api","when":{"path":{"prefix":"/api"}},"action":"queue sale"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := connector.New(connector.Options{Site: queue, Key: []byte(strings.Repeat("k", 32)), Client: &http.Client{Transport: towards{s.url}}, Log: servertest.Log(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	shop := httptest.NewTLSServer(c.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"tickets": 5000}`))
	})))
	t.Cleanup(shop.Close)
	certificate = filepath.Join(t.TempDir(), "shop.pem")
	if err := os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: shop.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return shop.URL, certificate
}

// TestAppsExamples runs the commands of APPS.md in one shell and compares their output with the shown
// responses. The shop is behind a real connector.
func TestAppsExamples(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"sh", "curl", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program, "is not on this machine")
		}
	}
	s := newSite(t)
	shop, certificate := newShop(t, s, "sale")
	examples := regexp.MustCompile("(?s)```sh\n(.*?)```\n(?:\n```json\n(.*?)```\n)?").FindAllStringSubmatch(readDoc(t, "APPS.md"), -1)
	var script strings.Builder
	for _, example := range examples {
		script.WriteString("printf '\\n@@@'\n" + strings.NewReplacer("http://127.0.0.1:8080", s.url, "https://shop.example.com", shop).Replace(example[1]))
	}
	s.create(`{"slug":"sale","windows":[{"length":"20s"}],"outflow":{"per_minute":6000},"targets":["` + shop + `/"]}`)
	shell := exec.CommandContext(t.Context(), "sh", "-eu")
	shell.Dir, shell.Stdin = t.TempDir(), strings.NewReader(script.String())
	shell.Env = append(os.Environ(), "CURL_CA_BUNDLE="+certificate)
	var out, complaint bytes.Buffer
	shell.Stdout, shell.Stderr = &out, &complaint
	if err := shell.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out.Bytes(), complaint.Bytes())
	}
	printed := strings.Split(out.String(), "\n@@@")[1:]
	if len(printed) != len(examples) || len(examples) < 10 {
		t.Fatalf("%d examples, %d answers", len(examples), len(printed))
	}
	for i, example := range examples {
		if example[2] != "" {
			contains(t, example[1], printed[i], example[2])
		}
	}
}

// code returns all code blocks of a language as one text.
func code(t *testing.T, doc, language string) string {
	t.Helper()
	var all strings.Builder
	for _, block := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(doc, -1) {
		all.WriteString(block[1])
	}
	if all.Len() == 0 {
		t.Fatalf("no code in %s", language)
	}
	return all.String()
}

// TestAppsTicket computes tickets with each program's constants, and compares them with the server's and
// with the one in the text.
func TestAppsTicket(t *testing.T) {
	t.Parallel()
	doc := readDoc(t, "APPS.md")
	shown := regexp.MustCompile("makes the ticket `([0-9a-f-]{36})`").FindStringSubmatch(doc)
	if shown == nil {
		t.Fatal("no ticket in the text")
	}
	secret := make([]byte, 32)
	for i := range secret {
		secret[i] = byte(i)
	}
	for _, language := range []string{"swift", "kotlin"} {
		text := code(t, doc, language)
		label := regexp.MustCompile(`"(proofline/[a-z]+/v[0-9]+)"`).FindStringSubmatch(text)
		bits := regexp.MustCompile(`b\[(\d+)\] = \(*b\[\d+\](?:\.toInt\(\))? (?:&|and) 0x([0-9a-f]+)\)? (?:\||or) 0x([0-9a-f]+)`).FindAllStringSubmatch(text, -1)
		if label == nil || len(bits) != 2 {
			t.Fatalf("%s: label %v, bits %v", language, label, bits)
		}
		sum := sha256.Sum256([]byte(label[1] + "\x00example.com/r/sale\x00" + string(secret)))
		for _, b := range bits {
			var n [3]uint64
			for i, base := range []int{10, 16, 16} {
				n[i], _ = strconv.ParseUint(b[i+1], base, 8)
			}
			sum[n[0]] = sum[n[0]]&byte(n[1]) | byte(n[2])
		}
		if got := uuid.UUID(sum[:16]).String(); got != shown[1] {
			t.Errorf("%s makes the ticket %s, want %s", language, got, shown[1])
		}
	}
	if own := fairness.NewTicket("example.com/r/sale", [32]byte(secret)).String(); own != shown[1] {
		t.Errorf("the room makes the ticket %s, want %s", own, shown[1])
	}
}

// TestAppsRoutes checks that the programs request existing routes of a room.
func TestAppsRoutes(t *testing.T) {
	t.Parallel()
	s, doc := newSite(t), readDoc(t, "APPS.md")
	routes := map[string]bool{}
	for _, r := range s.echo.Routes() {
		routes[r.Method+" "+r.Path] = true
	}
	for _, language := range []string{"swift", "kotlin"} {
		calls := regexp.MustCompile(`"(GET|POST)", "([^"]+)"`).FindAllStringSubmatch(code(t, doc, language), -1)
		if len(calls) != 7 {
			t.Errorf("%s makes %d kinds of requests", language, len(calls))
		}
		for _, c := range calls {
			path := publicPath + ":slug/" + strings.NewReplacer(`\(place.ticket)`, ":ticket", `${place.ticket}`, ":ticket").Replace(c[2])
			if !routes[c[1]+" "+path] {
				t.Errorf("%s asks for %s %s, which is no route", language, c[1], path)
			}
		}
	}
}

// TestAppsMembers checks that the responses have the members that the programs read, and that a receipt
// proves the entry given in the text.
func TestAppsMembers(t *testing.T) {
	t.Parallel()
	doc := readDoc(t, "APPS.md")
	s, pass := newTimed(t)
	s.create(`{"slug":"read","windows":[{"length":"1h"}],"outflow":{"per_minute":6000},"targets":["https://shop.example.com/"]}`)
	v, known := newVisitor("read"), map[string]bool{}
	learn := func(a answer) answer {
		a.isLoose = true
		membersOf(decode[any](a), known)
		return a
	}
	state := learn(s.get("/r/read/state"))
	joined := decode[wire.Joined](learn(s.post("/r/read/join", v.joinBody()).want(http.StatusCreated)))
	learn(s.get("/r/read/tickets/" + v.ticket)) // the app waits
	pass(time.Hour)
	var status string
	eventually(t, "the visitor is called", func() bool {
		status = decode[wire.Place](learn(s.get("/r/read/tickets/" + v.ticket))).Status
		return status == "called"
	})
	learn(s.post("/r/read/tickets/"+v.ticket+"/claim", v.claimBody()).want(http.StatusOK))
	learn(s.post("/r/read/tickets/"+v.ticket+"/leave", v.claimBody()).want(http.StatusGone))
	other := newVisitor("read")
	s.post("/r/read/join", other.joinBody()).want(http.StatusCreated)
	learn(s.post("/r/read/link", other.claimBody()).want(http.StatusOK))
	learn(s.post("/r/read/tickets/"+other.ticket+"/leave", other.claimBody()).want(http.StatusOK))

	for _, m := range regexp.MustCompile(`(?:get[A-Z]\w+|opt[A-Z]\w+|longOrNull|isNull)\("([a-z_]+)"\)`).FindAllStringSubmatch(code(t, doc, "kotlin"), -1) {
		if name := m[1]; !known[name] && name != "secret" { // stored by the app itself
			t.Errorf("Kotlin reads %s, which is in no answer", name)
		}
	}
	for _, m := range regexp.MustCompile(`(?s)struct \w+: Decodable(?:, Sendable)? \{(.*?)\n?\s*\}`).FindAllStringSubmatch(code(t, doc, "swift"), -1) {
		for _, l := range regexp.MustCompile(`let ([\w, ]+):`).FindAllStringSubmatch(m[1], -1) {
			for name := range strings.SplitSeq(l[1], ", ") {
				if !known[snake(name)] {
					t.Errorf("Swift reads %s, which is in no answer", snake(name))
				}
			}
		}
	}

	if !strings.Contains(doc, "\n    arrive TIME WINDOW SEQ TICKET LANE\n") {
		t.Fatal("the text says no entry")
	}
	entry := fmt.Sprintf("arrive %d %d %d %s general", joined.Time.UnixMilli(), joined.Window, joined.Seq, joined.Ticket)
	key, err := note.NewVerifier(decode[wire.State](state).VKey)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := audit.ParseProof([]byte(joined.Receipt))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := proof.Verify(audit.LeafHash([]byte(entry)), key); err != nil {
		t.Errorf("the receipt is not of %q: %v", entry, err)
	}
}

// membersOf collects the names of all members of a JSON value.
func membersOf(value any, names map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Collect(maps.Keys(value)) {
			names[name] = true
			membersOf(value[name], names)
		}
	case []any:
		for _, v := range value {
			membersOf(v, names)
		}
	}
}

// snake converts a Swift name to the name in JSON.
func snake(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
