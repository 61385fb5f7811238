package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room/session"
)

// quick is the configuration of a room that calls visitors at once.
const quick = `"windows":[{"length":"200ms"}],"outflow":{"per_minute":600000}`

// admit has a visitor join and claim.
func (s *site) admit(slug string) wire.Pass {
	s.Helper()
	v := newVisitor(slug)
	s.post("/r/"+slug+"/join", v.joinBody())
	var a answer
	eventually(s, "the ticket is called", func() bool {
		a = s.post("/r/"+slug+"/tickets/"+v.ticket+"/claim", v.claimBody())
		return a.status != http.StatusAccepted
	})
	return decode[wire.Pass](a.want(http.StatusOK))
}

// enter admits a visitor and redeems the pass.
func (s *site) enter(slug string) wire.Pass {
	s.Helper()
	p := s.admit(slug)
	s.post("/r/"+slug+"/passes/"+p.PassID+"/redeem", "", authorized(p.Pass)).want(http.StatusOK)
	return p
}

func authorized(pass string) string { return "Authorization: Bearer " + pass }

// TestSession follows an admitted visitor's session at the protected site.
func TestSession(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"shop","session":"1h",` + quick + `}`)
	p := s.admit("shop")
	size := decode[wire.State](s.get("/r/shop/state")).Size
	redeem := "/r/shop/passes/" + p.PassID + "/redeem"
	a := s.post(redeem, "", authorized(p.Pass)).want(http.StatusOK)
	got := decode[wire.Session](a)
	want := wire.Session{
		PassID: p.PassID, Ticket: p.Ticket, Position: p.Position, Lane: p.Lane, Ends: got.Ends,
		EndsAtMost: got.Ends.Add(3 * time.Hour),
	}
	if diff := cmp.Diff(want, got); diff != "" || (got.Ends.Sub(p.Expires)-(time.Hour-5*time.Minute)).Abs() > time.Second {
		t.Errorf("redeemed, pass until %v (-want +got):\n%s", p.Expires, diff)
	}
	if cache := a.header.Get("Cache-Control"); cache != "no-store" {
		t.Errorf("a session has Cache-Control %q", cache)
	}
	s.post(redeem, "", authorized(p.Pass)).problem(http.StatusConflict, "pass-used")
	touched := decode[wire.Session](s.post("/r/shop/sessions/touch", "", "Authorization: bearer "+p.Pass).want(http.StatusOK))
	if touched.Ends.Before(got.Ends) || touched.EndsAtMost != got.EndsAtMost {
		t.Errorf("touched: %+v, before %+v", touched, got)
	}
	released := decode[wire.Session](s.post("/r/shop/sessions/release", "", authorized(p.Pass)).want(http.StatusOK))
	if time.Until(released.Ends) > time.Second {
		t.Errorf("released: %+v", released)
	}
	s.post("/r/shop/sessions/touch", "", authorized(p.Pass)).problem(http.StatusGone, "session-over")
	s.post(redeem, "", authorized(p.Pass)).problem(http.StatusGone, "session-over")
	if again := decode[wire.Session](s.post("/r/shop/sessions/release", "", authorized(p.Pass)).want(http.StatusOK)); again != released {
		t.Errorf("released again: %+v, before %+v", again, released)
	}
	if now := decode[wire.State](s.get("/r/shop/state")).Size; now != size {
		t.Errorf("the transcript grew from %d to %d entries", size, now)
	}
}

// TestPassRefusals sends invalid and wrong passes to every route that accepts one.
func TestPassRefusals(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"shop",` + quick + `}`)
	s.create(`{"slug":"other",` + quick + `}`)
	p, foreign := s.admit("shop"), s.admit("other")
	redeem := "/r/shop/passes/" + p.PassID + "/redeem"
	// {"alg":"none","typ":"JWT"}
	none := "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0." + strings.Split(p.Pass, ".")[1] + "."
	for name, header := range map[string]string{
		"nothing": "Authorization: ", "no token": "Authorization: Bearer", "an empty token": "Authorization: Bearer ",
		"another scheme": "Authorization: Basic " + p.Pass, "no scheme": "Authorization: " + p.Pass,
		"the management's": authorized(token), "another room's": authorized(foreign.Pass), "without signature": authorized(none),
		"changed": authorized(p.Pass[:len(p.Pass)-10] + "AAAAAAAAAA"), "long": authorized(strings.Repeat("a", 12_000)),
	} {
		for _, path := range []string{redeem, "/r/shop/passes/" + foreign.PassID + "/redeem", "/r/shop/passes/x/redeem", "/r/shop/sessions/touch", "/r/shop/sessions/release"} {
			a := s.post(path, "", header)
			if got := a.problem(http.StatusUnauthorized, "invalid-pass"); strings.Contains(a.body, p.Pass) || got.Detail != session.ErrPass.Error() {
				t.Errorf("%s shown to %s: %s", name, path, a.body)
			}
		}
	}
	for _, id := range []string{foreign.PassID, "x", strings.ToUpper(p.PassID), p.Ticket} {
		s.post("/r/shop/passes/"+id+"/redeem", "", authorized(p.Pass)).problem(http.StatusNotFound, "unknown-pass")
	}
	s.post("/r/none/sessions/touch", "", authorized(p.Pass)).problem(http.StatusNotFound, "not-found")
	for _, path := range []string{redeem, "/r/shop/sessions/touch", "/r/shop/sessions/release"} {
		s.get(path, authorized(p.Pass)).problem(http.StatusMethodNotAllowed, "")
	}
	s.post(redeem, "", authorized(p.Pass)).want(http.StatusOK)
}

// TestDiscovery follows from the issuer of a pass to the key that signed it.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"shop",` + quick + `}`)
	got := decode[discovery](s.get("/r/shop/.well-known/openid-configuration").want(http.StatusOK))
	want := discovery{
		Issuer: publicURL + "/r/shop", Keys: publicURL + "/r/shop/jwks.json", Algorithms: []string{"EdDSA"}, Subjects: []string{"public"},
		Claims: []string{"iss", "aud", "sub", "jti", "iat", "nbf", "exp", "position", "lane"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("discovery (-want +got):\n%s", diff)
	}
	s.get("/r/none/.well-known/openid-configuration").problem(http.StatusNotFound, "not-found")
}

// TestRotateKeys checks that a new key is published at once, next to the old one, whose passes stay
// valid.
func TestRotateKeys(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"shop",` + quick + `}`)
	p := s.admit("shop")
	type keys struct {
		ID   string `json:"kid"`
		Keys []session.PassKey
	}
	before := decode[keys](s.get("/r/shop/jwks.json"))
	rotated := decode[keys](s.post("/v1/rooms/shop/rotate-keys", "").want(http.StatusOK))
	published := decode[keys](s.get("/r/shop/jwks.json"))
	if diff := cmp.Diff(rotated.Keys, published.Keys); diff != "" || len(published.Keys) != 2 ||
		published.Keys[0].ID != rotated.ID || published.Keys[1] != before.Keys[0] || rotated.ID == before.Keys[0].ID {
		t.Errorf("keys %+v, before %+v; answered and published differ by\n%s", rotated, before, diff)
	}
	s.post("/r/shop/passes/"+p.PassID+"/redeem", "", authorized(p.Pass)).want(http.StatusOK)
	s.post("/v1/rooms/none/rotate-keys", "").problem(http.StatusNotFound, "not-found")
}

type callsJSON struct{ By string }

type pulledJSON struct {
	Called  uint64 `json:"called"`
	UpTo    uint64 `json:"up_to"`
	Waiting uint64 `json:"waiting"`
	Active  uint64 `json:"active"`
}

// TestPull leaves calls to a backend, over HTTP.
func TestPull(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"shop","starts":"2199-01-01T00:00:00Z","windows":[{"length":"200ms"}],"outflow":{"per_minute":600}}`)
	s.post("/v1/rooms/shop/pull?n=1", "").problem(http.StatusConflict, "not-pull")
	if got := decode[callsJSON](s.get("/v1/rooms/shop/calls").want(http.StatusOK)); got.By != "rate" {
		t.Errorf("calls by %q", got.By)
	}
	for _, body := range []string{``, `{}`, `{"by":null}`, `{"by":"clock"}`, `{"by":true}`, `{"to":"pull"}`, `{"by":"pull","n":1}`} {
		s.do("PUT", "/v1/rooms/shop/calls", body).problem(http.StatusBadRequest, "invalid")
	}
	if got := decode[callsJSON](s.do("PUT", "/v1/rooms/shop/calls", `{"by":"pull"}`).want(http.StatusOK)); got.By != "pull" {
		t.Errorf("calls by %q", got.By)
	}
	for _, query := range []string{"", "?n=", "?n=0", "?n=-1", "?n=1.5", "?n=10001", "?n=99999999999999999999", "?m=1", "?n=x"} {
		s.post("/v1/rooms/shop/pull"+query, "").problem(http.StatusBadRequest, "invalid")
	}
	if got := decode[pulledJSON](s.post("/v1/rooms/shop/pull?n=10000", "").want(http.StatusOK)); got != (pulledJSON{}) {
		t.Errorf("pulled before the start: %+v", got)
	}
	eventually(t, "the state names the caller", func() bool { return strings.Contains(s.get("/r/shop/state").body, `"by":"pull"`) })
	s.do("PUT", "/v1/rooms/shop/calls", `{"by":"rate"}`).want(http.StatusOK)
	s.post("/v1/rooms/shop/pull?n=1", "").problem(http.StatusConflict, "not-pull")

	s.create(`{"slug":"now",` + quick + `}`)
	s.do("PUT", "/v1/rooms/now/calls", `{"by":"pull"}`).want(http.StatusOK)
	v := newVisitor("now")
	s.post("/r/now/join", v.joinBody()).want(http.StatusCreated)
	eventually(t, "the place is drawn", func() bool {
		return decode[wire.Place](s.get("/r/now/tickets/"+v.ticket)).Status == "drawn"
	})
	if got := decode[pulledJSON](s.post("/v1/rooms/now/pull?n=3", "").want(http.StatusOK)); got != (pulledJSON{Called: 1, UpTo: 1, Waiting: 1, Active: 1}) {
		t.Errorf("pulled: %+v", got)
	}
	s.post("/r/now/tickets/"+v.ticket+"/claim", v.claimBody()).want(http.StatusOK)
}
