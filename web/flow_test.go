package web

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/session"
)

// TestVisit follows two visitors from the join to the pass.
func TestVisit(t *testing.T) {
	t.Parallel()
	s, pass := newTimed(t)
	s.create(`{"slug":"visit","title":"A visit","windows":[{"length":"1h"}],"outflow":{"per_minute":6000}}`)
	own := newVisitor("visit")
	first := decode[wire.Joined](s.post("/r/visit/join", own.joinBody()).want(http.StatusCreated))
	if first.Ticket != own.ticket || first.Secret != "" || first.Time.Before(first.WindowFrom) || !first.Time.Before(first.WindowTo) {
		t.Errorf("joined as %+v", first)
	}
	s.checkReceipt("visit", first.Index, first.Ticket, first.Receipt)
	again := decode[wire.Joined](s.post("/r/visit/join", own.joinBody()).want(http.StatusOK))
	s.checkReceipt("visit", again.Index, again.Ticket, again.Receipt)
	if again.Receipt = first.Receipt; again != first {
		t.Errorf("joined again as %+v, before as %+v", again, first)
	}
	given := decode[wire.Joined](s.post("/r/visit/join", "").want(http.StatusCreated))
	if len(given.Secret) != 43 || given.Ticket == own.ticket || given.Index <= first.Index {
		t.Errorf("a visitor without ticket joined as %+v", given)
	}
	s.checkReceipt("visit", given.Index, given.Ticket, s.get("/r/visit/tickets/"+given.Ticket+"/receipt").want(http.StatusOK).body)
	s.checkWaiting(own)
	pass(time.Hour)
	for _, v := range []visitor{own, {given.Ticket, given.Secret}} {
		s.checkCalled(v)
		s.checkPass(v)
	}
	s.post("/v1/rooms/visit/end", "").want(http.StatusOK)
	s.post("/r/visit/join", newVisitor("visit").joinBody()).problem(http.StatusGone, "closed")
	s.post("/r/visit/join", own.joinBody()).want(http.StatusOK)
}

// checkWaiting checks a ticket whose window is open.
func (s *site) checkWaiting(v visitor) {
	s.Helper()
	got := decode[wire.Place](s.get("/r/visit/tickets/" + v.ticket).want(http.StatusOK))
	if got.Status != "waiting" || got.Lane != "general" || got.Position != nil || got.ETA == nil || got.ClaimBy != nil || got.Poll < 2000 {
		s.Errorf("waiting ticket: %+v", got)
	} else if got.Ahead.Min != 0 || got.Ahead.Max < 1 || got.ETA.Earliest.Before(got.WindowTo) || !got.ETA.Latest.IsZero() { // the window is open, so there is no latest time
		s.Errorf("waiting ticket: ahead %+v, eta %+v", got.Ahead, got.ETA)
	}
	a := s.post("/r/visit/tickets/"+v.ticket+"/claim", v.claimBody()).want(http.StatusAccepted)
	if soon := decode[wire.Place](a); soon.Status == "admitted" || soon.Ticket != v.ticket || a.header.Get("Retry-After") == "" {
		s.Errorf("claimed too soon: %+v, header %v", soon, a.header)
	}
}

// checkCalled waits for the call.
func (s *site) checkCalled(v visitor) {
	s.Helper()
	var got wire.Place
	eventually(s, "the ticket is called", func() bool {
		got = decode[wire.Place](s.get("/r/visit/tickets/" + v.ticket).want(http.StatusOK))
		return got.Status == "called"
	})
	if got.Position == nil || *got.Position < 1 || *got.Position > 2 || got.ETA != nil || got.LeftMS == nil || got.ClaimBy == nil {
		s.Fatalf("called ticket: %+v", got)
	}
	if left := time.Duration(*got.LeftMS) * time.Millisecond; left <= 0 || left > room.DefaultClaim || got.ClaimBy.Sub(s.now()).Abs() > left+10*time.Second {
		s.Errorf("called ticket: left %v, claim by %v", left, got.ClaimBy)
	}
	s.post("/r/visit/tickets/"+v.ticket+"/claim", newVisitor("visit").claimBody()).problem(http.StatusForbidden, "wrong-secret")
}

// checkPass claims the pass, twice, and verifies it as a protected site would.
func (s *site) checkPass(v visitor) {
	s.Helper()
	a := s.post("/r/visit/tickets/"+v.ticket+"/claim", v.claimBody()).want(http.StatusOK)
	p := decode[wire.Pass](a)
	if again := decode[wire.Pass](s.post("/r/visit/tickets/"+v.ticket+"/claim", v.claimBody()).want(http.StatusOK)); again != p {
		s.Errorf("claimed again: %+v, before %+v", again, p)
	}
	if got := a.header.Get("Cache-Control"); got != "no-store" {
		s.Errorf("a pass has Cache-Control %q", got)
	}
	claims := jwt.MapClaims{}
	_, err := jwt.ParseWithClaims(p.Pass, claims, s.passKey, jwt.WithValidMethods([]string{"EdDSA"}),
		jwt.WithIssuer("https://example.com/r/visit"), jwt.WithAudience("example.com/r/visit"), jwt.WithExpirationRequired(), jwt.WithTimeFunc(s.now))
	if err != nil {
		s.Fatalf("pass: %v", err)
	}
	if claims["sub"] != v.ticket || claims["jti"] != p.PassID || claims["position"] != float64(p.Position) || claims["exp"] != float64(p.Expires.Unix()) {
		s.Errorf("pass claims %v, answer %+v", claims, p)
	}
	got := decode[wire.Place](s.get("/r/visit/tickets/" + v.ticket).want(http.StatusOK))
	if got.Status != "admitted" || got.Settled == nil || *got.Position != p.Position || p.Ticket != v.ticket || p.Lane != "general" {
		s.Errorf("admitted ticket: %+v", got)
	}
}

// passKey finds the key of a pass among those that are published.
func (s *site) passKey(t *jwt.Token) (any, error) {
	a := s.get("/r/visit/jwks.json").want(http.StatusOK)
	if got := a.header.Get("Cache-Control"); got != "no-cache" {
		s.Errorf("keys have Cache-Control %q", got)
	}
	for _, k := range decode[struct{ Keys []session.PassKey }](a).Keys {
		if k.ID == t.Header["kid"] && k.Type == "OKP" && k.Curve == "Ed25519" && k.Use == "sig" {
			x, err := base64.RawURLEncoding.DecodeString(k.X)
			return ed25519.PublicKey(x), err
		}
	}
	return nil, fmt.Errorf("no key %v", t.Header["kid"])
}

// checkReceipt verifies a receipt of the ticket's arrival using only what the room publishes.
func (s *site) checkReceipt(slug string, index uint64, ticket, receipt string) {
	s.Helper()
	key, err := note.NewVerifier(decode[wire.State](s.get("/r/" + slug + "/state").want(http.StatusOK)).VKey)
	if err != nil {
		s.Fatal(err)
	}
	proof, err := audit.ParseProof([]byte(receipt))
	if err != nil {
		s.Fatal(err)
	}
	entry := s.entry(slug, index)
	if _, err := proof.Verify(audit.LeafHash(entry), key); err != nil || proof.Index != index {
		s.Errorf("receipt of entry %d: %v", index, err)
	}
	if !strings.HasPrefix(string(entry), "arrive ") || !strings.Contains(string(entry), ticket) {
		s.Errorf("entry %d is %q, want the arrival of %s", index, entry, ticket)
	}
}

// entry reads one entry of a short log.
func (s *site) entry(slug string, index uint64) (found []byte) {
	s.Helper()
	tile := audit.Tile{Level: -1, Index: index / audit.TileWidth, Width: int(index%audit.TileWidth) + 1}
	bundle := s.get("/r/" + slug + "/" + tile.Path()).want(http.StatusOK).body
	err := audit.SplitBundle([]byte(bundle), tile.Width, func(e []byte) error { found = bytes.Clone(e); return nil })
	if err != nil {
		s.Fatal(err)
	}
	return found
}

// TestTooEarly joins before the room opens.
func TestTooEarly(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	opens := time.Now().Add(time.Hour)
	s.create(`{"slug":"later","opens":"` + opens.UTC().Format(time.RFC3339) + `"}`)
	a := s.post("/r/later/join", newVisitor("later").joinBody())
	a.problem(http.StatusConflict, "too-early")
	if got := a.header.Get("Retry-After"); got < "3590" || got > "3600" || len(got) != 4 {
		t.Errorf("Retry-After %q, want an hour", got)
	}
	state := decode[wire.State](s.get("/r/later/state").want(http.StatusOK))
	if state.Phase != "upcoming" || state.Window != nil || state.Poll.AfterMS != 60_000 || !state.Opens.Equal(opens.Truncate(time.Second)) {
		t.Errorf("state %+v", state)
	}
}

// TestNoShow lets a called ticket expire.
func TestNoShow(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"late","windows":[{"length":"100ms"}],"outflow":{"per_minute":6000},"claim":"1s"}`)
	v := newVisitor("late")
	s.post("/r/late/join", v.joinBody()).want(http.StatusCreated)
	var got wire.Place
	eventually(t, "the ticket is skipped", func() bool {
		got = decode[wire.Place](s.get("/r/late/tickets/" + v.ticket).want(http.StatusOK))
		return got.Status == "skipped"
	})
	if got.Reason != "no-show" || got.Settled == nil || got.Position == nil || got.ClaimBy != nil || got.ETA != nil {
		t.Errorf("skipped ticket: %+v", got)
	}
	s.post("/r/late/tickets/"+v.ticket+"/claim", v.claimBody()).problem(http.StatusGone, "expired")
}

// TestPaused checks a called and a drawn ticket in a pause.
func TestPaused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"halt","windows":[{"length":"100ms"}],"outflow":{"per_minute":6000,"max_active":1}}`)
	visitors := []visitor{newVisitor("halt"), newVisitor("halt"), newVisitor("halt")}
	for _, v := range visitors {
		s.post("/r/halt/join", v.joinBody()).want(http.StatusCreated)
	}
	status := map[string]wire.Place{}
	eventually(t, "one is called, the others drawn", func() bool {
		clear(status)
		for _, v := range visitors {
			got := decode[wire.Place](s.get("/r/halt/tickets/" + v.ticket).want(http.StatusOK))
			status[got.Status] = got
		}
		return len(status) == 2 && status["called"].Ticket != "" && status["drawn"].Ticket != ""
	})
	if drawn := status["drawn"]; drawn.ETA == nil || drawn.Position == nil || drawn.Ahead.Min != drawn.Ahead.Max || drawn.Ahead.Min != *drawn.Position-2 {
		t.Errorf("drawn ticket: %+v", drawn)
	}
	if o := decode[wire.State](s.get("/r/halt/state").want(http.StatusOK)).Outflow; o.Free == nil || *o.Free != 0 || o.First == nil || time.Until(*o.First) < 19*time.Minute || o.Freed == nil || *o.Freed != 0.05 { // one in 20 minutes
		t.Errorf("outflow of a full site: %+v", o)
	}
	s.post("/v1/rooms/halt/pause", "").want(http.StatusOK)
	called := decode[wire.Place](s.get("/r/halt/tickets/" + status["called"].Ticket).want(http.StatusOK))
	if called.LeftMS == nil || *called.LeftMS <= 0 || called.ClaimBy != nil {
		t.Errorf("called ticket in a pause: %+v", called)
	}
	drawn := decode[wire.Place](s.get("/r/halt/tickets/" + status["drawn"].Ticket).want(http.StatusOK))
	if drawn.ETA != nil {
		t.Errorf("drawn ticket in a pause: %+v", drawn)
	}
}

// TestCrowd joins many visitors at once; each receipt proves its own arrival.
func TestCrowd(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"crowd","windows":[{"length":"1h"}]}`)
	var mu sync.Mutex
	seen := map[uint64]wire.Joined{}
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			v := newVisitor("crowd")
			j := decode[wire.Joined](s.post("/r/crowd/join", v.joinBody()).want(http.StatusCreated))
			mu.Lock()
			defer mu.Unlock()
			seen[j.Index] = j
		})
	}
	wg.Wait()
	if len(seen) != 200 {
		t.Fatalf("%d places for 200 visitors", len(seen))
	}
	for index, j := range seen {
		if index%20 == 0 {
			s.checkReceipt("crowd", index, j.Ticket, j.Receipt)
		}
	}
}

// TestNoSecretsInLog runs a visit with the log at debug level.
func TestNoSecretsInLog(t *testing.T) {
	t.Parallel()
	var log safeBuffer
	s := newSite(t, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	s.create(`{"slug":"visit","windows":[{"length":"100ms"}],"outflow":{"per_minute":6000}}`)
	v := newVisitor("visit")
	s.post("/r/visit/join?secret="+v.secret, v.joinBody()).want(http.StatusCreated)
	s.post("/r/visit/tickets/"+v.ticket+"/claim", `{"secret":"`+v.secret+`x"}`).problem(http.StatusBadRequest, "invalid")
	s.checkCalled(v)
	p := decode[wire.Pass](s.post("/r/visit/tickets/"+v.ticket+"/claim", v.claimBody()).want(http.StatusOK))
	for what, secret := range map[string]string{"secret": v.secret, "pass": p.Pass, "management token": token} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log has the %s", what)
		}
	}
	for _, want := range []string{"path=/r/visit/join", "status=201", "ip=127.0.0.1", "request_id="} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s", want)
		}
	}
}

// safeBuffer is a bytes.Buffer for several goroutines.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
