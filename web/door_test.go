package web

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/beacon/local"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/fairness/credential/issuer"
	"github.com/proofline/proofline/internal/issuertest"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/testlog"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/door"
	"github.com/proofline/proofline/room/evidence"
	"github.com/proofline/proofline/web/client"
	web "github.com/proofline/proofline/web/issuer"
)

// rounds are the rounds of a chain on this machine.
type rounds struct{ *local.Beacon }

// Wait implements [evidence.Rounds].
func (r rounds) Wait(ctx context.Context, round uint64) ([]byte, error) {
	for {
		if signature, err := r.Sign(round); err == nil {
			return signature, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

var (
	task  = issuertest.Work("task", 16)
	club  = issuertest.Signed("club", 2)
	phone = issuertest.Blind("phone", 0)
)

// newDoor starts a site with a room whose lane general needs work, and whose lane members needs a club.
func newDoor(t *testing.T, methods ...credential.Method) *site {
	t.Helper()
	s, _ := newTimedDoor(t, methods...)
	return s
}

// newTimedDoor starts it with a clock that the test controls, which the beacon follows.
func newTimedDoor(t *testing.T, methods ...credential.Method) (s *site, pass func(time.Duration)) {
	t.Helper()
	c := pgtest.NewClock(t)
	b, err := local.New(local.NewKey(), local.Config{ID: "test", Genesis: time.Now().Unix() - 1000, Period: 1, Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	s, pass = startTimed(t, c, evidence.Chain{Chain: b.Chain(), Rounds: rounds{b}})
	list, err := json.Marshal(append([]credential.Method{task.Method, club.Method, phone.Method}, methods...))
	if err != nil {
		t.Fatal(err)
	}
	s.create(`{"slug":"door","windows":[{"length":"24h"}],"methods":` + string(list) + `,"lanes":[{"name":"general",` +
		`"weight":3,"needs":["task"]},{"name":"members","weight":1,"needs":["club"]}]}`)
	return s, pass
}

// subjectOf is made as an app makes it, from the room's public state.
func (s *site) subjectOf(v visitor, lane string) credential.Subject {
	s.Helper()
	state := decode[wire.State](s.get("/r/door/state"))
	subject := credential.Subject{Lane: lane}
	entry, err := hex.DecodeString(state.Entry)
	if err != nil || copy(subject.Room[:], entry) != 32 {
		s.Fatalf("entry %q: %v", state.Entry, err)
	}
	if state.Work.Signature != nil {
		subject.Round, _ = hex.DecodeString(*state.Work.Signature)
	}
	subject.Ticket, err = fairness.ParseTicket(v.ticket)
	if err != nil {
		s.Fatal(err)
	}
	return subject
}

// showing is the body of a join with credentials.
func (v visitor) showing(lane string, list ...credential.Credential) string {
	written := []door.Written{}
	for _, c := range list {
		written = append(written, door.Write(c))
	}
	text, _ := json.Marshal(map[string]any{"ticket": v.ticket, "lane": lane, "credentials": written})
	return string(text)
}

// TestDoor joins with credentials over HTTP. Each way to be wrong has its type of problem.
func TestDoor(t *testing.T) {
	t.Parallel()
	s := newDoor(t)
	state := decode[wire.State](s.get("/r/door/state"))
	want := []wire.Method{{Name: "task", Kind: "work", Bits: 16}, {Name: "club", Kind: "signed", Key: club.Method.Key, Limit: 2}}
	if fmt.Sprint(state.Methods[:2]) != fmt.Sprint(want) || len(state.Methods[2].Key) != 512 || fmt.Sprint(state.Lanes["members"].Needs) != "[club]" {
		t.Errorf("methods %+v, lanes %+v", state.Methods, state.Lanes)
	}
	v := newVisitor("door")
	if state.Work.Signature == nil {
		early := s.post("/r/door/join", v.showing("general", task.Show(s.subjectOf(v, "general"), 0)))
		if early.status == http.StatusConflict { // the round may have appeared meanwhile
			early.problem(http.StatusConflict, "work-not-yet")
			if early.header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		}
	}
	eventually(t, "the round is in the state", func() bool { return decode[wire.State](s.get("/r/door/state")).Work.Signature != nil })
	seen := decode[wire.State](s.get("/r/door/state")).Work
	if shown := decode[wire.Room](s.get("/v1/rooms/door").want(http.StatusOK)).Work; !reflect.DeepEqual(shown, seen) {
		t.Errorf("the organizer sees %+v, want %+v", shown, seen)
	}
	members := s.subjectOf(v, "members")
	good := club.Show(members, 1)
	wrong := good
	wrong.Evidence = bytes.Clone(good.Evidence)
	wrong.Evidence[0] ^= 1
	short := good
	short.Evidence = good.Evidence[:10]
	unknown := good
	unknown.Method = "fans"
	for name, c := range map[string]struct {
		body            string
		status          int
		problem, fields string
		methods         string
	}{
		"none":       {v.showing("members"), 403, "credential-missing", "", "[club]"},
		"no list":    {v.joinBody(), 403, "credential-missing", "", "[task]"},
		"wrong":      {v.showing("members", wrong), 403, "credential-invalid", "", "[club]"},
		"lane":       {v.showing("members", club.Show(s.subjectOf(v, "general"), 1)), 403, "credential-invalid", "", "[club]"},
		"short":      {v.showing("members", phone.Show(members, 0), short), 400, "credential-malformed", "credentials[1].evidence", "[]"},
		"twice":      {v.showing("members", good, good), 400, "credential-malformed", "credentials[1].method", "[]"},
		"unknown":    {v.showing("members", good, unknown), 400, "credential-unknown-method", "", "[fans]"},
		"not a list": {`{"lane":"members","credentials":"` + v.ticket + `"}`, 400, "credential-malformed", "credentials", "[]"},
		"not hex":    {`{"credentials":[{"method":"club","nullifier":"zz","evidence":"00"}]}`, 400, "credential-malformed", "credentials[0]", "[]"},
		"too large":  {v.showing("members", credential.Credential{Method: "club", Evidence: make([]byte, doorBody)}), 413, "too-large", "", "[]"},
	} {
		p := s.post("/r/door/join", c.body).problem(c.status, c.problem)
		var fields []string
		for _, e := range p.Errors {
			fields = append(fields, e.Field)
		}
		if strings.Join(fields, " ") != c.fields || fmt.Sprint(p.Methods) != c.methods {
			t.Errorf("%s: errors of %q, methods %v", name, fields, p.Methods)
		}
	}
	if now := decode[wire.State](s.get("/r/door/state")); now.Arrivals != 0 || now.Size != 2 {
		t.Errorf("%d arrivals and %d entries, want the room and the beat", now.Arrivals, now.Size)
	}
	first := decode[wire.Joined](s.post("/r/door/join", v.showing("members", phone.Show(members, 0), good)).want(http.StatusCreated))
	again := decode[wire.Joined](s.post("/r/door/join", v.joinBody()).want(http.StatusOK))
	if first.Index != again.Index {
		t.Errorf("%+v and again %+v", first, again)
	}
	s.checkShown(first, "members", good, phone.Show(members, 0))
	w, x := newVisitor("door"), newVisitor("door")
	if p := s.post("/r/door/join", w.showing("members", club.Show(s.subjectOf(w, "members"), 1))).problem(409, "credential-used"); fmt.Sprint(p.Methods) != "[club]" {
		t.Errorf("%+v", p)
	}
	s.post("/r/door/join", w.showing("members", club.Show(s.subjectOf(w, "members"), 2))).want(http.StatusCreated)
	s.post("/r/door/join", x.showing("members", club.Show(s.subjectOf(x, "members"), 3))).problem(409, "method-full")
	s.post("/r/door/join", x.showing("", task.Show(s.subjectOf(x, "general"), 0))).want(http.StatusCreated)
	eventually(t, "the state counts them", func() bool {
		now := decode[wire.State](s.get("/r/door/state"))
		return now.Methods[0].Taken == 1 && now.Methods[1].Taken == 2 && now.Methods[2].Taken == 1
	})
}

// checkShown verifies the receipt of a join as APPS.md describes it.
func (s *site) checkShown(j wire.Joined, lane string, list ...credential.Credential) {
	s.Helper()
	doc, err := os.ReadFile("APPS.md")
	if err != nil || !strings.Contains(string(doc), "A join with credentials has ` METHOD NULLIFIER EVIDENCE` for each after that") {
		s.Error("the text does not say what the receipt is for", err)
	}
	entry := fmt.Sprintf("arrive %d %d %d %s %s", j.Time.UnixMilli(), j.Window, j.Seq, j.Ticket, lane)
	for _, c := range list {
		entry += " " + string(c.AppendText(nil))
	}
	key, err := note.NewVerifier(decode[wire.State](s.get("/r/door/state")).VKey)
	if err != nil {
		s.Fatal(err)
	}
	proof, err := audit.ParseProof([]byte(j.Receipt))
	if err != nil {
		s.Fatal(err)
	}
	if _, err := proof.Verify(audit.LeafHash([]byte(entry)), key); err != nil {
		s.Errorf("the receipt is not for %s: %v", entry, err)
	}
}

// TestMerit shows a credential after the arrival.
func TestMerit(t *testing.T) {
	t.Parallel()
	s := newDoor(t)
	eventually(t, "the round is in the state", func() bool { return decode[wire.State](s.get("/r/door/state")).Work.Signature != nil })
	v := newVisitor("door")
	path := "/r/door/tickets/" + v.ticket + "/credentials"
	body := func(c credential.Credential, secret string) string {
		w := door.Write(c)
		text, _ := json.Marshal(map[string]string{"secret": secret, "method": w.Method, "nullifier": w.Nullifier, "evidence": w.Evidence})
		return string(text)
	}
	good := club.Show(s.subjectOf(v, "general"), 1)
	s.post(path, body(good, v.secret)).problem(http.StatusNotFound, "unknown-ticket")
	s.post("/r/door/join", v.showing("", task.Show(s.subjectOf(v, "general"), 0))).want(http.StatusCreated)
	s.post(path, body(good, newVisitor("door").secret)).problem(http.StatusForbidden, "wrong-secret")
	s.post(path, body(good, "")).problem(http.StatusBadRequest, "invalid")
	s.post(path, `{"secret":"`+v.secret+`","method":"club","evidence":"0"}`).problem(http.StatusBadRequest, "credential-malformed")
	short := good
	short.Evidence = good.Evidence[:9]
	if p := s.post(path, body(short, v.secret)).problem(http.StatusBadRequest, "credential-malformed"); p.Errors[0].Field != "evidence" {
		t.Errorf("%+v", p.Errors)
	}
	s.post(path, body(club.Show(s.subjectOf(v, "members"), 1), v.secret)).problem(http.StatusForbidden, "credential-invalid")
	m := decode[wire.Merit](s.post(path, body(good, v.secret)).want(http.StatusCreated))
	if m.Ticket != v.ticket || m.Method != "club" || m.Index == 0 || !strings.Contains(m.Receipt, fmt.Sprintf("index %d\n", m.Index)) {
		t.Errorf("%+v", m)
	}
	again := decode[wire.Merit](s.post(path, body(good, v.secret)).want(http.StatusOK))
	if again.Index != m.Index || !strings.Contains(again.Receipt, fmt.Sprintf("index %d\n", m.Index)) {
		t.Errorf("%+v", again)
	}
	if shown := s.get(path).want(http.StatusOK).body; shown != fmt.Sprintf("club %d\n", m.Index) {
		t.Errorf("shown: %q", shown)
	}
	s.get("/r/door/tickets/"+newVisitor("door").ticket+"/credentials").problem(http.StatusNotFound, "unknown-ticket")
	s.post("/r/door/tickets/"+v.ticket+"/leave", v.claimBody()).want(http.StatusOK)
	s.post(path, body(phone.Show(s.subjectOf(v, "general"), 0), v.secret)).problem(http.StatusGone, "credential-late")
}

// TestVouchedPage: where every lane needs credentials, the page has no button that joins without one.
func TestVouchedPage(t *testing.T) {
	t.Parallel()
	s := newDoor(t)
	page := s.get("/r/door", "Accept: text/html").want(http.StatusOK).body
	if strings.Contains(page, `data-post="line"`) || !strings.Contains(page, `name="lane" value="general"`) || !strings.Contains(page, "/assets/work.F6.js") {
		t.Errorf("the page offers a join without work, or no work:\n%s", page)
	}
	s.post("/r/door/line", `{}`, "Origin: "+publicURL).problem(http.StatusForbidden, "credential-missing")
	s.create(`{"slug":"half","windows":[{"length":"24h"}],"methods":[{"name":"task","kind":"work","bits":16}],"lanes":[{"name":"first","weight":1,` +
		`"needs":["task"]},{"name":"second","weight":1}]}`)
	if page := s.get("/r/half", "Accept: text/html").want(http.StatusOK).body; !strings.Contains(page, `action="/r/half/line"`) {
		t.Error("the page offers no join of the lane that needs nothing")
	}
	joined := decode[struct{ Ticket string }](loose(s.post("/r/half/line", `{}`, "Origin: "+publicURL).want(http.StatusCreated)))
	if place := decode[wire.Place](loose(s.get("/r/half/tickets/" + joined.Ticket))); place.Lane != "second" {
		t.Errorf("%+v", place)
	}
}

// vouch is an issuer's site with codes.
type vouch struct {
	*httptest.Server
	codes []string
}

// newVouch starts the site of an issuer, which vouches for those with a code in lane members of a room.
func newVouch(t *testing.T, of *issuer.Issuer, roomURL string, entry [32]byte) *vouch {
	t.Helper()
	codes, err := of.NewList("codes", true, "code")
	if err != nil {
		t.Fatal(err)
	}
	v := &vouch{}
	for range 2 {
		v.codes = append(v.codes, issuer.NewCode())
		codes.Add(v.codes[len(v.codes)-1])
	}
	to, _ := url.Parse(roomURL)
	v.Server = httptest.NewUnstartedServer(nil)
	own, _ := url.Parse("http://" + v.Listener.Addr().String())
	log := testlog.New(t, slog.LevelInfo)
	site, err := web.New(web.Config{Issuer: of, URL: own, Name: "Club", Clients: client.New(nil, log), Now: time.Now, Log: log,
		Offers: []*web.Offer{{RoomURL: to, Proof: web.ByList, List: codes,
			Offer: &issuer.Offer{Name: "derby", Method: "fans", Room: entry, Lanes: []string{"members"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(site.Close)
	v.Config.Handler = site
	v.Start()
	t.Cleanup(v.Close)
	return v
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([a-z]+)" value="([^"]*)">`)

// submit sends a form as a browser does, and returns the form in the page that follows.
func submit(t *testing.T, to, origin string, form url.Values) url.Values {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", origin)
	response, err := plain.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var page bytes.Buffer
	_, _ = page.ReadFrom(response.Body)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d: %s", to, response.StatusCode, page.String())
	}
	next := url.Values{}
	for _, field := range hidden.FindAllStringSubmatch(page.String(), -1) {
		next.Set(field[1], field[2])
	}
	return next
}

// TestIssuerSendsVisitor sends a visitor to an issuer's page and back with a credential, by forms alone.
func TestIssuerSendsVisitor(t *testing.T) {
	t.Parallel()
	store, err := issuer.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	of, err := issuer.New(bytes.Repeat([]byte{7}, issuer.SecretSize), store)
	if err != nil {
		t.Fatal(err)
	}
	method := of.Method(&issuer.Offer{Name: "derby", Method: "fans"})
	s := newDoor(t, method)
	s.create(`{"slug":"fans","windows":[{"length":"24h"}],"party":4,"methods":[` + string(must(json.Marshal(method))) + `],"lanes":[{"name":"members","weight":1,"needs":["fans"]}]}`)
	state := decode[wire.State](s.get("/r/fans/state"))
	entry := [32]byte(must(hex.DecodeString(state.Entry)))
	club := newVouch(t, of, s.url+"/r/fans", entry)
	v := newVisitor("fans")
	form := submit(t, club.URL+"/derby", s.url, url.Values{"ticket": {v.ticket}, "lane": {"members"}})
	form.Set("field0", club.codes[0])
	form = submit(t, club.URL+"/derby/prove", club.URL, form)
	back := func(form url.Values) answer {
		return s.post("/r/fans/credential", form.Encode(), "Content-Type: application/x-www-form-urlencoded",
			"Origin: "+club.URL, "Sec-Fetch-Site: cross-site", "Accept: text/html")
	}
	choice := back(form).want(http.StatusOK).body
	for name := range form {
		if !strings.Contains(choice, `<input type="hidden" name="`+name+`" value="`+form.Get(name)+`">`) {
			t.Errorf("the choice of seats does not keep %s: %s", name, choice)
		}
	}
	if !strings.Contains(choice, `<option>4</option></select>`) || strings.Contains(choice, "<option>5") || strings.Contains(choice, "<script") {
		t.Errorf("the choice of seats: %s", choice)
	}
	form.Set("seats", "5")
	back(form).want(http.StatusBadRequest)
	form.Set("seats", "3")
	for range 2 {
		if a := back(form).want(http.StatusSeeOther); a.header.Get("Location") != "/r/fans" || a.header.Get("Set-Cookie") != "" {
			t.Errorf("answer %v", a.header)
		}
	}
	place := decode[wire.Place](loose(s.get("/r/fans/tickets/" + v.ticket)))
	if place.Lane != "members" || place.Seats != 3 {
		t.Errorf("%+v", place)
	}
	form.Del("seats")
	back(form).want(http.StatusSeeOther) // who has joined has chosen
	stolen := url.Values{"ticket": {newVisitor("fans").ticket}, "seats": {"1"}}
	for _, name := range []string{"lane", "method", "nullifier", "evidence"} {
		stolen.Set(name, form.Get(name))
	}
	if a := back(stolen).want(http.StatusConflict); !strings.Contains(a.body, "This confirmation was used already") {
		t.Errorf("used: %s", a.body)
	}
	stolen.Set("nullifier", strings.Repeat("00", 32))
	if a := back(stolen).want(http.StatusForbidden); !strings.Contains(a.body, "The confirmation was not accepted") {
		t.Errorf("invalid: %s", a.body)
	}
	stolen.Set("evidence", "")
	back(stolen).want(http.StatusBadRequest)
	s.post("/r/fans/credential", `{}`).problem(http.StatusUnsupportedMediaType, "media-type")
}

// TestHostileForm: the form of another site's page, which needs no permission, neither reaches the page that answers, nor
// changes or reveals the place of the visitor who sends it.
func TestHostileForm(t *testing.T) {
	t.Parallel()
	s := newDoor(t)
	own, other := newVisitor("door"), newVisitor("door")
	c := door.Write(club.Show(s.subjectOf(other, "members"), 1))
	const hostile = "<script>alert(1)</script>"
	form := url.Values{"ticket": {other.ticket}, "lane": {"members"}, "method": {c.Method}, "nullifier": {c.Nullifier}, "evidence": {c.Evidence}}
	send := func(form url.Values) answer {
		return s.post("/r/door/credential?to=https://evil.example", form.Encode(), "Content-Type: application/x-www-form-urlencoded",
			"Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Accept: text/html", "Cookie: "+secretCookie+"door="+own.secret)
	}
	for name := range form {
		changed := maps.Clone(form)
		changed[name] = []string{hostile}
		if a := send(changed).want(http.StatusBadRequest); strings.Contains(a.body, "alert(1)") {
			t.Errorf("%s: the page repeats it", name)
		}
	}
	a := send(form).want(http.StatusSeeOther)
	if a.header.Get("Location") != "/r/door" || a.header.Get("Set-Cookie") != "" || a.header.Get("Referrer-Policy") != "same-origin" || strings.Contains(a.body, own.secret) {
		t.Errorf("%v %s", a.header, a.body)
	}
	s.get("/r/door/tickets/"+own.ticket).problem(http.StatusNotFound, "unknown-ticket")
}

// TestConfirmations leads from a room's page to its issuers: first the visitor's browser gets the cookie, then the
// page has forms with its ticket, and none with its secret.
func TestConfirmations(t *testing.T) {
	t.Parallel()
	s := newDoor(t)
	s.do(http.MethodPatch, "/v1/rooms/door", `{"issuers": ["club https://club.example.org/derby Example <b>Club"]}`, "Authorization: Bearer "+token, "Content-Type: application/json").want(http.StatusOK)
	html := "Accept: text/html"
	first := s.get("/r/door", html).want(http.StatusOK)
	if strings.Contains(first.body, "club.example.org/derby") || !strings.Contains(first.body, "Confirm with Example &lt;b&gt;Club") ||
		!strings.Contains(first.body, `name="lane" value="members"`) {
		t.Errorf("%s", first.body)
	}
	sent := s.post("/r/door/line", "lane=members", "Content-Type: application/x-www-form-urlencoded", html).want(http.StatusSeeOther)
	kept, _, _ := strings.Cut(sent.header.Get("Set-Cookie"), ";")
	if sent.header.Get("Location") != "/r/door?confirm=1" || kept == "" {
		t.Fatalf("%v", sent.header)
	}
	_, secret, _ := strings.Cut(kept, "=")
	then := s.get("/r/door?confirm=1", html, "Cookie: "+kept).want(http.StatusOK)
	ticket := regexp.MustCompile(`<form method="post" action="https://club.example.org/derby"><input type="hidden" name="ticket" value="([0-9a-f-]{36})">`).FindStringSubmatch(then.body)
	if ticket == nil || strings.Contains(then.body, secret) || strings.Contains(then.body, "blocks cookies, and the confirmation") {
		t.Errorf("%v %s", ticket, then.body)
	}
	if got := then.header.Get("Referrer-Policy"); got != "strict-origin" {
		t.Errorf("Referrer-Policy %q", got)
	}
	if got := then.header.Get("Content-Security-Policy"); !strings.HasSuffix(got, "form-action 'self' https://club.example.org") {
		t.Errorf("Content-Security-Policy %q", got)
	}
	if a := s.get("/r/door?confirm=1", html).want(http.StatusOK); !strings.Contains(a.body, "blocks cookies, and the confirmation") {
		t.Errorf("without cookies: %s", a.body)
	}
	if now := decode[wire.State](s.get("/r/door/state")); now.Arrivals != 0 {
		t.Errorf("%d arrivals", now.Arrivals)
	}
	again := s.post("/r/door/line", "lane=members", "Content-Type: application/x-www-form-urlencoded", html, "Cookie: "+kept).want(http.StatusSeeOther)
	if got, _, _ := strings.Cut(again.header.Get("Set-Cookie"), ";"); got != kept {
		t.Error("a browser's ticket changes before it has joined")
	}
}

// TestIssuerAway says on the room's page that an issuer is away, as long as it is.
func TestIssuerAway(t *testing.T) {
	t.Parallel()
	var isAway atomic.Bool
	rooms, pool := newRooms(t)
	s := startSite(t, Options{Rooms: rooms, Control: newControl(t, rooms, pool), AdminToken: token,
		IsAway: func(r *room.Room, c *room.Confirmation) bool {
			return isAway.Load() && r.Slug == "door" && c.Issuer.URL.Host == "club.example.org"
		}})
	method, err := json.Marshal(club.Method)
	if err != nil {
		t.Fatal(err)
	}
	s.create(`{"slug": "door", "methods": [` + string(method) + `], "lanes": [{"name": "general", "weight": 1, "needs": ["club"]}],
		"issuers": ["club https://club.example.org/derby Example Club"]}`)
	for _, is := range []bool{false, true, false} {
		isAway.Store(is)
		body := s.get("/r/door", "Accept: text/html").want(http.StatusOK).body
		if strings.Contains(body, "Confirming with Example Club does not work right now.") != is {
			t.Errorf("away: %t\n%s", is, body)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
