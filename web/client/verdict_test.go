package client

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"testing"
)

// TestVerdict checks that trusted proxies alone give verdicts, and that the strictest counts.
func TestVerdict(t *testing.T) {
	t.Parallel()
	as := New([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, slog.New(slog.DiscardHandler))
	for _, test := range []struct {
		remote string
		lines  []string
		want   Verdict
	}{
		{"192.0.2.1:1", nil, Verdict{}},
		{"192.0.2.1:1", []string{""}, Verdict{}},
		{"192.0.2.1:1", []string{"refuse"}, Verdict{IsRefused: true}},
		{"203.0.113.1:1", []string{"refuse"}, Verdict{}},
		{"203.0.113.1:1", []string{"score=0"}, Verdict{}},
		{"192.0.2.1:1", []string{"score=0"}, Verdict{HasScore: true}},
		{"192.0.2.1:1", []string{"score=100"}, Verdict{HasScore: true, Score: 100}},
		{"192.0.2.1:1", []string{"score=100, score=7"}, Verdict{HasScore: true, Score: 7}},
		{"192.0.2.1:1", []string{"score=7", "score=100"}, Verdict{HasScore: true, Score: 7}},
		{"192.0.2.1:1", []string{"score=100", "refuse"}, Verdict{IsRefused: true, HasScore: true, Score: 100}},
		{"192.0.2.1:1", []string{"score=101"}, Verdict{}},
		{"192.0.2.1:1", []string{"score=-1", "score=+1", "score=1.5", "score=", "score=0001", "REFUSE", "allow"}, Verdict{}},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.RemoteAddr = test.remote
		r.Header[VerdictHeader] = test.lines
		if got := as.Verdict(r); got != test.want {
			t.Errorf("%q from %s: %+v, want %+v", test.lines, test.remote, got, test.want)
		}
	}
	for _, test := range []struct {
		v     Verdict
		least uint32
		want  bool
	}{
		{Verdict{}, 100, false}, {Verdict{IsRefused: true}, 0, true}, {Verdict{HasScore: true}, 0, false},
		{Verdict{HasScore: true, Score: 29}, 30, true}, {Verdict{HasScore: true, Score: 30}, 30, false},
	} {
		if test.v.Refuses(test.least) != test.want {
			t.Errorf("%+v refuses in a room that wants %d: %v", test.v, test.least, !test.want)
		}
	}
}

func FuzzVerdict(f *testing.F) {
	for _, text := range []string{"refuse", "score=50", "score=100", "score=1e2", "", "score=٣"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, ok := parseVerdict(text)
		if ok && text != "refuse" && (v.Score > MaxScore || v.IsRefused || text[len("score="):] == "") {
			t.Errorf("%q is %+v", text, v)
		}
		if n, err := strconv.Atoi(text); err == nil && ok {
			t.Errorf("%d is a verdict", n)
		}
	})
}
