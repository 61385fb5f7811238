package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"math/big"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cloudflare/circl/blindsign/blindrsa"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/fairness/credential/issuer"
	"github.com/proofline/proofline/internal/freeport"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room/door"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/source"
)

// drill is a room whose lanes members and quiet need credentials of another organization's issuer. Anyone joins the lane
// general.
type drill struct {
	*issuerBench

	dir     string // of the server
	server  *process
	issuer  *process
	url     string // of the room
	methods map[string]credential.Method
	entry   [sha256.Size]byte
	codes   map[string][]string // for each method
}

const drillRoom = `{"slug": %q, "beacon": "none", "windows": [{"length": "24h"}], "methods": %s, "issuers": %s, "lanes": [
	{"name": "general", "weight": 1}, {"name": "members", "weight": 1, "needs": ["club"]}, {"name": "quiet", "weight": 1, "needs": ["phone"]}]}`

func newDrill(t *testing.T) *drill {
	t.Helper()
	b := &issuerBench{t: t, dir: t.TempDir(), addr: freeport.Addr(t)}
	b.configured = filepath.Join(b.dir, "issuer.yaml")
	d := &drill{issuerBench: b, dir: tempDir(t), codes: map[string][]string{}}
	d.server = startServer(t, nil, "--data", d.dir, "--addr", "127.0.0.1:0")
	for _, method := range []string{"club", "phone"} {
		d.codes[method] = d.makeCodes(method)
	}
	d.create("derby")
	d.issuer = d.start()
	return d
}

// create creates a room with the methods that the program prints, and has the issuer offer them there.
func (d *drill) create(slug string) {
	d.t.Helper()
	d.url = d.server.url + "/r/" + slug
	d.entry = sha256.Sum256(nil)
	d.configure()
	d.methods = map[string]credential.Method{}
	var list []credential.Method
	for line := range strings.Lines(d.run("methods", "--config", d.configured)) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "method "); ok {
			m, err := credential.ParseMethod(text)
			if err != nil {
				d.t.Fatal(err)
			}
			d.methods[m.Name], list = m, append(list, m)
		}
	}
	body := fmt.Appendf(nil, drillRoom, slug, mustJSON(d.t, list), mustJSON(d.t, d.pages()))
	if _, err := manager(d.t, d.server, d.dir).Call(d.t.Context(), http.MethodPost, "/v1/rooms", body, &struct{}{}); err != nil {
		d.t.Fatal(err)
	}
	out, err := exec.Command("proofline", "issuer", "room", d.url).CombinedOutput()
	found := regexp.MustCompile(`(?m)^entry ([0-9a-f]{64})$`).FindSubmatch(out)
	if err != nil || found == nil {
		d.t.Fatalf("%v: %s", err, out)
	}
	if _, err := hex.Decode(d.entry[:], found[1]); err != nil {
		d.t.Fatal(err)
	}
	d.configure()
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// pages are the setting issuers of the room.
func (d *drill) pages() []string {
	return []string{"club http://" + d.addr + "/club Example Club", "phone http://" + d.addr + "/phone Example Club"}
}

// configure writes the issuer's configuration.
func (d *drill) configure() {
	d.t.Helper()
	text := fmt.Sprintf("url: http://%s\nname: Example Club\noffers:\n", d.addr)
	for _, o := range []struct{ name, kind, lane string }{{"club", "signed", "members"}, {"phone", "blind", "quiet"}} {
		text += fmt.Sprintf("- {name: %s, kind: %s, lanes: [%s], proof: list, list: %s, room: %q, entry: \"%x\"}\n", o.name, o.kind,
			o.lane, o.name, d.url, d.entry)
	}
	if err := os.WriteFile(d.configured, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// makeCodes makes three codes.
func (d *drill) makeCodes(list string) (codes []string) {
	d.t.Helper()
	out := filepath.Join(d.t.TempDir(), "codes.csv")
	d.run("codes", "--list", list, "--count", "3", "--out", out)
	text, err := os.ReadFile(out)
	if err != nil {
		d.t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil {
		d.t.Fatal(err)
	}
	for _, row := range rows[1:] {
		codes = append(codes, row[0])
	}
	return codes
}

func (d *drill) ticket(n int) fairness.Ticket {
	return fairness.NewTicket(strings.TrimPrefix(d.url, "http://"), sha256.Sum256(fmt.Append(nil, n)))
}

func (d *drill) subject(lane string, ticket fairness.Ticket) credential.Subject {
	return credential.Subject{Room: d.entry, Lane: lane, Ticket: ticket}
}

// prove has the issuer confirm a visitor with a code, and returns the fragment that goes back to the room; nil: it
// refuses with the status.
func (d *drill) prove(offer, code string, form url.Values) (fragment url.Values, status int) {
	d.t.Helper()
	form.Set("response", "fragment")
	status, page, _ := d.post("/"+offer, d.server.url, form)
	flow := flowField.FindStringSubmatch(page)
	if status != http.StatusOK || flow == nil {
		d.t.Fatalf("status %d:\n%s", status, page)
	}
	status, _, location := d.post("/"+offer+"/prove", "http://"+d.addr, url.Values{"flow": {html.UnescapeString(flow[1])}, "field0": {code}})
	if status != http.StatusSeeOther {
		return nil, status
	}
	_, text, _ := strings.Cut(location, "#")
	fragment, err := url.ParseQuery(text)
	if err != nil {
		d.t.Fatal(err)
	}
	return fragment, status
}

// signed gets a credential of the method club for a ticket.
func (d *drill) signed(ticket fairness.Ticket, code string) credential.Credential {
	d.t.Helper()
	fragment, status := d.prove("club", code, url.Values{"ticket": {ticket.String()}, "lane": {"members"}})
	fields := strings.Split(fragment.Get("credential"), " ")
	if len(fields) != 3 {
		d.t.Fatalf("status %d, %q", status, fields)
	}
	c, err := credential.Parse([]byte(fields[0]), []byte(fields[1]), []byte(fields[2]))
	if err != nil {
		d.t.Fatal(err)
	}
	return c
}

// blind gets a blind credential of the method phone for a ticket.
func (d *drill) blind(ticket fairness.Ticket, code string) credential.Credential {
	d.t.Helper()
	n, _ := new(big.Int).SetString(d.methods["phone"].Key, 16)
	client, err := blindrsa.NewClient(blindrsa.SHA384PSSZeroDeterministic, &rsa.PublicKey{N: n, E: credential.Exponent})
	if err != nil {
		d.t.Fatal(err)
	}
	blinded, state, err := client.Blind(rand.Reader, d.subject("quiet", ticket).AppendMessage(nil, "phone", nil))
	if err != nil {
		d.t.Fatal(err)
	}
	fragment, status := d.prove("phone", code, url.Values{"blinded": {hex.EncodeToString(blinded)}})
	response, err := hex.DecodeString(strings.TrimPrefix(fragment.Get("blind_signature"), "phone "))
	if err != nil || len(response) == 0 {
		d.t.Fatalf("status %d, %v", status, err)
	}
	signature, err := client.Finalize(state, response)
	if err != nil {
		d.t.Fatal(err)
	}
	return credential.Credential{Method: "phone", Evidence: signature}
}

// join joins a lane, and returns the status and the type of the problem.
func (d *drill) join(lane string, ticket fairness.Ticket, shown ...credential.Credential) (status int, problem string) {
	d.t.Helper()
	written := []door.Written{}
	for _, c := range shown {
		written = append(written, door.Write(c))
	}
	body := mustJSON(d.t, map[string]any{"ticket": ticket.String(), "lane": lane, "credentials": written})
	status, err := (&api.Client{Base: d.url}).Call(d.t.Context(), http.MethodPost, "/join", body, &struct{}{})
	if p := (*api.Problem)(nil); errors.As(err, &p) {
		return p.Status, p.Type
	} else if err != nil {
		d.t.Fatal(err)
	}
	return status, ""
}

// joins joins a lane, which must succeed.
func (d *drill) joins(lane string, ticket fairness.Ticket, shown ...credential.Credential) {
	d.t.Helper()
	if status, problem := d.join(lane, ticket, shown...); problem != "" {
		d.t.Errorf("join lane %s: %d %s", lane, status, problem)
	}
}

// published waits until the room has published all its entries.
func (d *drill) published() {
	d.t.Helper()
	var room wire.Room
	if _, err := manager(d.t, d.server, d.dir).Call(d.t.Context(), http.MethodGet, "/v1/rooms/"+filepath.Base(d.url), nil, &room); err != nil {
		d.t.Fatal(err)
	}
	waitFor(d.t, "all entries are published", func() bool {
		src, err := source.HTTP(d.url, nil)
		if err != nil {
			d.t.Fatal(err)
		}
		signed, err := src.Checkpoint(d.t.Context())
		head, err2 := verifier.Unverified(signed)
		return errors.Join(err, err2) == nil && head.Size >= room.Size
	})
}

// audited runs the auditor's program, and checks its exit code and what it says.
func (d *drill) audited(wantCode int, want []string, args ...string) {
	d.t.Helper()
	d.published()
	stdout, stderr, code := command(d.t, "", "proofline-verify", append([]string{"audit", d.url, "--no-keep"}, args...)...)
	text := strings.Join(strings.Fields(stdout+stderr), " ")
	if code != wantCode {
		d.t.Errorf("the audit with %q exits with %d, want %d:\n%s", args, code, wantCode, text)
	}
	for _, part := range want {
		if !strings.Contains(text, part) {
			d.t.Errorf("the audit with %q does not say %q:\n%s", args, part, text)
		}
	}
}

// count is the address of the issuer's signed count.
func (d *drill) count() string { return "http://" + d.addr + "/issued" }

// organizer runs a command of the organizer, and returns what it prints and its exit code.
func (d *drill) organizer(args ...string) (text string, code int) {
	d.t.Helper()
	stdout, stderr, code := proofline(d.t, "", append(append([]string{"room"}, args...), "--data", d.dir)...)
	return stdout + stderr, code
}

// does runs a command of the organizer, which must succeed.
func (d *drill) does(args ...string) {
	d.t.Helper()
	if text, code := d.organizer(args...); code != 0 {
		d.t.Fatalf("%q exits with %d: %s", args, code, text)
	}
}

// forger signs as another holder of the issuer's key does, who has a copy of its directory.
func (d *drill) forger() *issuer.Issuer {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.data(), "secret"))
	if err != nil {
		d.t.Fatal(err)
	}
	secret, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		d.t.Fatal(err)
	}
	store, err := issuer.OpenStore(d.t.TempDir())
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = store.Close() })
	i, err := issuer.New(secret, store)
	if err != nil {
		d.t.Fatal(err)
	}
	return i
}

// forged returns a credential of the method club for an account without a proof.
func (d *drill) forged(i *issuer.Issuer, ticket fairness.Ticket, account string) credential.Credential {
	d.t.Helper()
	in, err := i.Issue(&issuer.Offer{Name: "club", Method: "club", Room: d.entry, Lanes: []string{"members"}}, account,
		issuer.Request{Lane: "members", Ticket: ticket})
	if err != nil {
		d.t.Fatal(err)
	}
	return credential.Credential{Method: "club", Nullifier: in.Nullifier, Evidence: in.Evidence}
}

// check runs proofline issuer check, and returns the tickets that it prints and its exit code.
func (d *drill) check() (foreign []string, code int) {
	d.t.Helper()
	d.published()
	stdout, stderr, code := proofline(d.t, "", "issuer", "check", "--config", d.configured, "--data", d.data())
	if code > 1 {
		d.t.Fatalf("issuer check exits with %d: %s", code, stderr)
	}
	return strings.Fields(stdout), code
}

// page returns what a browser shows that has chosen the lane of a visitor without a place.
func (d *drill) page(lane string) string {
	d.t.Helper()
	jar, _ := cookiejar.New(nil) // fails for no options
	browser := &http.Client{Jar: jar}
	r, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, d.url+"/line", strings.NewReader("lane="+lane))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept-Language", "en")
	response, err := browser.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		d.t.Fatalf("status %d, %v", response.StatusCode, err)
	}
	return html.UnescapeString(string(text))
}

// TestCrashIssuer kills the issuer. The room goes on, those who are confirmed join, and the page says what to do. Then
// the issuer comes back at another address, with its records.
func TestCrashIssuer(t *testing.T) {
	slow(t)
	t.Parallel()
	d := newDrill(t)
	d.joins("members", d.ticket(1), d.signed(d.ticket(1), d.codes["club"][0]))
	confirmed := d.signed(d.ticket(2), d.codes["club"][1])
	d.issuer.kill()

	if _, err := http.Get("http://" + d.addr + "/club"); err == nil {
		t.Fatal("the issuer answers")
	}
	page := d.page("members")
	for _, want := range []string{`action="http://` + d.addr + `/club"`, "If that page does not open, come back here and try again."} {
		if !strings.Contains(page, want) {
			t.Errorf("the room's page does not have %q:\n%s", want, page)
		}
	}
	d.joins("members", d.ticket(2), confirmed)
	d.joins("general", d.ticket(3))
	if status, problem := d.join("members", d.ticket(4)); status != http.StatusUnprocessableEntity && status != http.StatusForbidden {
		t.Errorf("without a credential: %d %s", status, problem)
	}
	d.does("message", "derby", `en="The page of the club is away. Your place is safe."`)
	d.audited(0, []string{"club was shown by 2 tickets: the word of the issuer"})

	d.addr = freeport.Addr(t)
	d.configure()
	d.issuer = d.start()
	d.does("amend", "derby", "--issuer", d.pages()[0], "--issuer", d.pages()[1])
	if page := d.page("members"); !strings.Contains(page, `action="http://`+d.addr+`/club"`) {
		t.Errorf("the room's page does not lead to the new address:\n%s", page)
	}
	if _, status := d.prove("club", d.codes["club"][0], url.Values{"ticket": {d.ticket(4).String()}, "lane": {"members"}}); status != http.StatusConflict {
		t.Errorf("a used code: status %d", status)
	}
	d.joins("members", d.ticket(4), d.signed(d.ticket(4), d.codes["club"][2]))
	d.joins("quiet", d.ticket(5), d.blind(d.ticket(5), d.codes["phone"][0]))
	d.audited(0, []string{"3 accounts had got a credential for club, and 3 tickets showed one",
		"1 account had got a credential for phone, and 1 ticket showed one"}, "--issued", d.count())
	if foreign, code := d.check(); len(foreign) > 0 || code != 0 {
		t.Errorf("the issuer does not know %q, exit code %d", foreign, code)
	}
	d.issuer.stop()
	d.server.stop()
}

// TestCrashIssuerKey gives the issuer's key to another program, which vouches for accounts that do not exist. The transcript
// alone does not show it. The signed count does, the issuer finds the tickets, and the organizer revokes them and goes on
// in another room with another key.
func TestCrashIssuerKey(t *testing.T) {
	slow(t)
	t.Parallel()
	d := newDrill(t)
	own, thief := d.ticket(1), d.forger()
	d.joins("members", own, d.signed(own, d.codes["club"][0]))
	foreign := []string{d.ticket(2).String(), d.ticket(3).String()}
	for n, account := range []string{"nobody", "nobody else"} {
		d.joins("members", d.ticket(2+n), d.forged(thief, d.ticket(2+n), account))
	}
	d.audited(0, []string{"club was shown by 3 tickets", "another holder of its key, leaves no trace here"})
	d.audited(1, []string{"issuer More tickets showed club than its issuer counts: 3 and 1.",
		"1 account had got a credential for club, and 3 tickets showed one. So the issuer signs more than it counts, or somebody else has its key."},
		"--issued", d.count())
	found, code := d.check()
	if fmt.Sprint(found) != fmt.Sprint(foreign) || code != 1 {
		t.Errorf("the issuer finds %q with exit code %d, want %q", found, code, foreign)
	}

	if _, err := manager(t, d.server, d.dir).Call(t.Context(), http.MethodPatch, "/v1/rooms/derby", []byte(`{"methods": []}`), &struct{}{}); err == nil {
		t.Error("the methods of a room can be changed")
	}
	for _, ticket := range found {
		d.does("revoke", "derby", ticket, "--reason", "fraud")
	}
	d.audited(0, []string{"Why the organizer took places away (2)."})
	d.audited(1, nil, "--issued", d.count()) // a nullifier stays used when its ticket leaves

	d.does("end", "derby", "--yes")
	d.issuer.stop()
	before := d.methods["club"].Key
	if err := os.Rename(d.data(), d.data()+".leaked"); err != nil {
		t.Fatal(err)
	}
	for method := range d.codes {
		d.codes[method] = d.makeCodes(method)
	}
	d.create("derby-2")
	d.issuer = d.start()
	if d.methods["club"].Key == before {
		t.Error("the issuer has the same key")
	}
	if status, problem := d.join("members", d.ticket(1), d.forged(thief, d.ticket(1), "nobody")); problem == "" {
		t.Errorf("the other room takes a credential of the old key: %d", status)
	}
	d.joins("members", d.ticket(1), d.signed(d.ticket(1), d.codes["club"][0]))
	d.audited(0, []string{"1 account had got a credential for club, and 1 ticket showed one"}, "--issued", d.count())
	d.issuer.stop()
	d.server.stop()
}

// TestCrashIssuerTwice has the issuer issue twice. The room takes no nullifier a second time; a second nullifier and a
// second blind signature show only in the count.
func TestCrashIssuerTwice(t *testing.T) {
	slow(t)
	t.Parallel()
	d := newDrill(t)
	code, blindCode := d.codes["club"][0], d.codes["phone"][0]
	d.issuer.stop()
	older := filepath.Join(t.TempDir(), "older")
	copyDir(t, d.data(), older)
	d.issuer = d.start()
	d.joins("members", d.ticket(1), d.signed(d.ticket(1), code))
	d.joins("quiet", d.ticket(2), d.blind(d.ticket(2), blindCode))
	d.audited(0, nil, "--issued", d.count())

	d.issuer.stop()
	if err := os.RemoveAll(d.data()); err != nil {
		t.Fatal(err)
	}
	copyDir(t, older, d.data()) // a backup, which does not know of the two
	d.issuer = d.start()
	again := d.signed(d.ticket(3), code)
	if status, problem := d.join("members", d.ticket(3), again); status != http.StatusConflict || !strings.HasSuffix(problem, "used") {
		t.Errorf("a nullifier for a second ticket: %d %s", status, problem)
	}
	d.joins("quiet", d.ticket(4), d.blind(d.ticket(4), blindCode))
	d.audited(1, []string{"issuer More tickets showed phone than its issuer counts: 2 and 1.", "No nullifier was used twice"}, "--issued", d.count())
	if found, code := d.check(); fmt.Sprint(found) != fmt.Sprint([]fairness.Ticket{d.ticket(1)}) || code != 1 {
		t.Errorf("the issuer finds %q with exit code %d, want the ticket that it has forgotten", found, code)
	}

	// An issuer that lies in its count, too, leaves no trace: it makes codes for people who do not exist.
	d.issuer.stop()
	invented := d.makeCodes("club")
	d.issuer = d.start()
	for n, code := range invented {
		d.joins("members", d.ticket(10+n), d.signed(d.ticket(10+n), code))
	}
	d.audited(1, []string{"4 accounts had got a credential for club, and 4 tickets showed one. The count is its word, too: it does not show that these accounts belong to different people."},
		"--issued", d.count())
	d.issuer.stop()
	d.server.stop()
}
