package web

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room/session"
)

func batchBody(t testing.TB, touch, release []string) string {
	t.Helper()
	b, err := json.Marshal(sessionChanges{touch, release})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestSessionBatch changes many sessions at once, with valid and invalid passes.
func TestSessionBatch(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"shop",` + quick + `}`)
	s.create(`{"slug":"other",` + quick + `}`)
	a, b, foreign, unused := s.enter("shop").Pass, s.enter("shop").Pass, s.enter("other").Pass, s.admit("shop").Pass
	const ok, over, unredeemed, invalid = session.OutcomeOK, session.OutcomeOver, session.OutcomeUnredeemed, session.OutcomeInvalid
	for _, step := range []struct {
		name           string
		touch, release []string
		want           sessionOutcomes
	}{
		{"nothing", nil, nil, sessionOutcomes{[]session.Outcome{}, []session.Outcome{}}},
		{"some", []string{a, "x", foreign, b, a}, nil, sessionOutcomes{[]session.Outcome{ok, invalid, invalid, ok, ok}, []session.Outcome{}}},
		{"one was not redeemed", []string{unused, a}, nil, sessionOutcomes{[]session.Outcome{unredeemed, ok}, []session.Outcome{}}},
		{"one is let go", []string{a, b}, []string{"", b, b}, sessionOutcomes{[]session.Outcome{ok, ok}, []session.Outcome{invalid, ok, ok}}},
		{"it stays so", []string{b, a}, []string{b}, sessionOutcomes{[]session.Outcome{over, ok}, []session.Outcome{ok}}},
		{"no session is left", nil, []string{a, foreign}, sessionOutcomes{[]session.Outcome{}, []session.Outcome{ok, invalid}}},
	} {
		got := s.post("/r/shop/sessions/batch", batchBody(t, step.touch, step.release)).want(http.StatusOK)
		if diff := cmp.Diff(step.want, decode[sessionOutcomes](got)); diff != "" || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	for _, pass := range []string{a, b} {
		s.post("/r/shop/sessions/touch", "", authorized(pass)).problem(http.StatusGone, "session-over")
	}
	s.post("/r/shop/sessions/touch", "", authorized(unused)).problem(http.StatusConflict, "pass-unredeemed")
	s.post("/r/other/sessions/touch", "", authorized(foreign)).want(http.StatusOK)
}

func TestSessionBatchRefusals(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"shop",` + quick + `}`)
	for _, body := range []string{
		``, `[]`, `{"touch":"x"}`, `{"touch":[1]}`, `{"touch":[],"end":[]}`, `{} {}`, `{"touch":[`,
		batchBody(t, make([]string, session.MaxChanges), make([]string, 1)),
	} {
		s.post("/r/shop/sessions/batch", body, "Content-Type: application/json").problem(http.StatusBadRequest, "invalid")
	}
	s.post("/r/shop/sessions/batch", batchBody(t, []string{strings.Repeat("a", sessionsBody)}, nil)).problem(http.StatusRequestEntityTooLarge, "too-large")
	s.post("/r/shop/sessions/batch", `{}`, "Content-Type: text/plain").problem(http.StatusUnsupportedMediaType, "media-type")
	s.post("/r/none/sessions/batch", `{}`).problem(http.StatusNotFound, "not-found")
	s.get("/r/shop/sessions/batch").problem(http.StatusMethodNotAllowed, "")
	s.post("/r/shop/sessions/batch", batchBody(t, make([]string, session.MaxChanges), nil)).want(http.StatusOK)
}

// TestRedeemAgain: a client that got no response may repeat the request, and no other client may.
func TestRedeemAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(`{"slug":"shop",` + quick + `}`)
	client := func(c byte) string {
		return clientHeader + ": " + base64.RawURLEncoding.EncodeToString([]byte(strings.Repeat(string(c), 16)))
	}
	p, silent := s.admit("shop"), s.admit("shop")
	redeem := "/r/shop/passes/" + p.PassID + "/redeem"
	for _, wrong := range []string{"x", strings.Repeat("A", 21), strings.Repeat("A", 23), strings.Repeat("A", 21) + "B", strings.Repeat("=", 22)} {
		s.post(redeem, "", authorized(p.Pass), clientHeader+": "+wrong).problem(http.StatusBadRequest, "invalid")
	}
	first := decode[wire.Session](s.post(redeem, "", authorized(p.Pass), client('a')).want(http.StatusOK))
	if again := decode[wire.Session](s.post(redeem, "", authorized(p.Pass), client('a')).want(http.StatusOK)); again != first {
		t.Errorf("answered again: %+v, at first %+v", again, first)
	}
	s.post(redeem, "", authorized(p.Pass), client('b')).problem(http.StatusConflict, "pass-used")
	s.post(redeem, "", authorized(p.Pass)).problem(http.StatusConflict, "pass-used")
	s.post("/r/shop/sessions/release", "", authorized(p.Pass)).want(http.StatusOK)
	s.post(redeem, "", authorized(p.Pass), client('a')).problem(http.StatusGone, "session-over")

	redeem = "/r/shop/passes/" + silent.PassID + "/redeem"
	s.post(redeem, "", authorized(silent.Pass)).want(http.StatusOK)
	s.post(redeem, "", authorized(silent.Pass), client('a')).problem(http.StatusConflict, "pass-used")
}

func FuzzSessionChanges(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"touch":["a"],"release":["b","c"]}`, `{"touch":null}`, `{"Touch":["a"]}`, `{"touch":[]}x`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		in, err := parseSessionChanges(body)
		if err != nil {
			return
		}
		if n := len(in.Touch) + len(in.Release); n > session.MaxChanges || !json.Valid(body) {
			t.Errorf("%d passes read of %q", n, body)
		}
	})
}
