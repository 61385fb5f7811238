package relay_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/fairness/beacon/local"
	"github.com/proofline/proofline/fairness/beacon/relay"
)

// Rounds 42 and 123 of quicknet, from ../testdata.
const (
	round42  = "95a9f9f5b231b7714de1553105d8ffdf3dcda24cfdb1e689319bccf79a9c8ce430a91b811fbfaf763900bc998b5d686a"
	round123 = "b75c69d0b72a5d906e854e808ba7e2accb1542ac355ae486d591aa9d43765482e26cd02df835d3546d23c4b13e0dfc92"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// counted is a relay that counts its requests.
type counted struct {
	*httptest.Server
	asked atomic.Int64
}

func serve(t *testing.T, handler http.HandlerFunc) *counted {
	t.Helper()
	c := new(counted)
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.asked.Add(1)
		handler(w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

// honest responds like quicknet's relays.
func honest(w http.ResponseWriter, r *http.Request) {
	quicknet := beacon.Quicknet()
	switch hash := fmt.Sprintf("/%x", quicknet.Hash()); r.URL.Path {
	case hash + "/public/42":
		_, _ = fmt.Fprintf(w, `{"round":42,"randomness":"fe","signature":%q}`, round42)
	case hash + "/public/123":
		_, _ = fmt.Fprintf(w, `{"round":123,"signature":%q}`, round123)
	case hash + "/info":
		_, _ = w.Write(relay.EncodeInfo(quicknet))
	default:
		http.NotFound(w, r)
	}
}

func says(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// hangs responds only when the client is gone.
func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// dead returns the address of a relay that does not exist.
func dead(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

func quicknet(urls ...string) *relay.Client {
	return &relay.Client{Chain: beacon.Quicknet(), URLs: urls}
}

func TestRound(t *testing.T) {
	r := serve(t, honest)
	for n, want := range map[uint64]string{42: round42, 123: round123} {
		if got, err := quicknet(r.URL+"/").Round(t.Context(), n); err != nil || hex.EncodeToString(got) != want {
			t.Errorf("round %d: %x, %v", n, got, err)
		}
	}
}

// TestBadRelays: a bad relay is never trusted, the error says what it did, and another relay is used instead.
func TestBadRelays(t *testing.T) {
	good := serve(t, honest)
	other, err := local.New(local.NewKey(), local.Config{Period: 3})
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := other.Sign(42)
	if err != nil {
		t.Fatal(err)
	}
	flipped := unhex(t, round42)
	flipped[47] ^= 1
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"wrong signature":       {says(200, string(relay.EncodeRound(42, flipped))), "signature does not verify"},
		"other round's":         {says(200, string(relay.EncodeRound(42, unhex(t, round123)))), "signature does not verify"},
		"other chain's":         {says(200, string(relay.EncodeRound(42, foreign))), "signature does not verify"},
		"other round":           {says(200, string(relay.EncodeRound(123, unhex(t, round123)))), "answers with round 123"},
		"no signature":          {says(200, `{"round":42}`), "not drand's JSON"},
		"uncompressed":          {says(200, `{"round":42,"signature":"`+strings.Repeat("00", 96)+`"}`), "not drand's JSON"},
		"not hex":               {says(200, `{"round":42,"signature":"xyz"}`), "not drand's JSON"},
		"not JSON":              {says(200, "<html>"), "not drand's JSON"},
		"nothing":               {says(200, ""), "not drand's JSON"},
		"huge":                  {says(200, `{"round":42,"signature":"`+round42+`"}`+strings.Repeat(" ", 64<<10)), "more than 65536 bytes"},
		"500":                   {says(500, "oops"), "status 500 Internal Server Error"},
		"404":                   {says(404, ""), "status 404 Not Found"},
		"status without a name": {says(499, ""), "status 499"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, good.URL+r.URL.Path, http.StatusFound)
		}, "status 302 Found"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"round":42,`)
		}, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := serve(t, c.handler)
			_, err := quicknet(bad.URL).Round(t.Context(), 42)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), strings.TrimPrefix(bad.URL, "http://")) {
				t.Errorf("error %v, want %q and the relay", err, c.want)
			}
			if name == "404" != errors.Is(err, relay.ErrNotYet) {
				t.Errorf("errors.Is(%v, ErrNotYet) is wrong", err)
			}
			if got, err := quicknet(bad.URL, good.URL).Round(t.Context(), 42); err != nil || hex.EncodeToString(got) != round42 {
				t.Errorf("with a good relay: %x, %v", got, err)
			}
		})
	}
}

func TestDeadRelay(t *testing.T) {
	good, gone := serve(t, honest), dead(t)
	if _, err := quicknet(gone, dead(t)).Round(t.Context(), 42); err == nil || strings.Count(err.Error(), "connection refused") != 2 {
		t.Errorf("error %v", err)
	}
	c := quicknet(gone, good.URL)
	if _, err := c.Round(t.Context(), 42); err != nil {
		t.Error(err)
	}
}

// TestFailureIsForgotten: a relay that failed is tried again.
func TestFailureIsForgotten(t *testing.T) {
	var asked atomic.Int64
	r := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		honest(w, r)
	})
	c := quicknet(r.URL)
	if _, err := c.Round(t.Context(), 42); err == nil {
		t.Error("no error of a relay that failed")
	}
	if _, err := c.Round(t.Context(), 42); err != nil {
		t.Error(err)
	}
}

func TestCache(t *testing.T) {
	r := serve(t, honest)
	c := quicknet(r.URL)
	for range 3 {
		got, err := c.Round(t.Context(), 42)
		if err != nil || hex.EncodeToString(got) != round42 {
			t.Fatalf("%x, %v", got, err)
		}
		got[0] = 0 // only of the caller
	}
	if r.asked.Load() != 1 {
		t.Errorf("asked %d times, want 1", r.asked.Load())
	}
}

// TestCacheIsBounded: rounds are forgotten, the oldest first.
func TestCacheIsBounded(t *testing.T) {
	l, err := local.New(local.NewKey(), local.Config{Period: 1})
	if err != nil {
		t.Fatal(err)
	}
	r := serve(t, l.Handler().ServeHTTP)
	c := &relay.Client{Chain: l.Chain(), URLs: []string{r.URL}}
	get := func(n uint64) {
		t.Helper()
		if _, err := c.Round(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	for n := uint64(1); n <= 65; n++ {
		get(n)
	}
	asked := r.asked.Load()
	for n := uint64(2); n <= 65; n++ {
		get(n)
	}
	if r.asked.Load() != asked {
		t.Errorf("asked %d times for what was there", r.asked.Load()-asked)
	}
	if get(1); r.asked.Load() != asked+1 {
		t.Error("the 65th round did not replace the first")
	}
}

// TestShared: concurrent calls for the same round share one response.
func TestShared(t *testing.T) {
	release := make(chan struct{})
	r := serve(t, func(w http.ResponseWriter, r *http.Request) {
		<-release
		honest(w, r)
	})
	c := quicknet(r.URL)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			got, err := c.Round(t.Context(), 42)
			if err != nil || hex.EncodeToString(got) != round42 {
				t.Errorf("%x, %v", got, err)
			}
			clear(got) // only of this caller
		})
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Round(impatient, 42); !errors.Is(err, context.Canceled) {
		t.Errorf("an impatient caller gets %v", err)
	}
	close(release)
	wg.Wait()
	if r.asked.Load() > 2 { // 2 if the impatient caller was the first one
		t.Errorf("asked %d times", r.asked.Load())
	}
}

// TestLastCallerLeaves: the request is cancelled when the last caller leaves.
func TestLastCallerLeaves(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan struct{})
	r := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
		close(ended)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := quicknet(r.URL).Round(ctx, 42); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("the request goes on")
	}
}

func TestNothingToAsk(t *testing.T) {
	good := serve(t, honest)
	broken := quicknet(good.URL)
	broken.Chain.PublicKey = [96]byte{}
	for _, c := range []struct {
		client *relay.Client
		round  uint64
		want   error
	}{{quicknet(good.URL), 0, relay.ErrRound}, {quicknet(), 42, relay.ErrNoRelays}, {broken, 42, beacon.ErrChain}} {
		if _, err := c.client.Round(t.Context(), c.round); !errors.Is(err, c.want) {
			t.Errorf("Round: %v, want %v", err, c.want)
		}
		if _, err := c.client.Wait(t.Context(), c.round); !errors.Is(err, c.want) {
			t.Errorf("Wait: %v, want %v", err, c.want)
		}
	}
	if _, err := quicknet().Info(t.Context()); !errors.Is(err, relay.ErrNoRelays) {
		t.Errorf("Info: %v", err)
	}
	if good.asked.Load() != 0 {
		t.Error("a relay was asked all the same")
	}
}

// TestErrorsShowNoAddress checks that errors name only the host of a URL, because the rest may be secret.
func TestErrorsShowNoAddress(t *testing.T) {
	bad := serve(t, says(500, ""))
	address := strings.Replace(bad.URL, "http://", "http://user:hunter2@", 1) + "/token-hunter3?key=hunter4"
	for _, address := range []string{address, strings.Replace(dead(t), "http://", "http://hunter2@", 1) + "/hunter3", "http://hunter2 hunter3", "hunter4\x00"} {
		var logged bytes.Buffer
		c := quicknet(address)
		c.Log = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
		_, err := c.Round(t.Context(), 42)
		if err == nil || strings.Contains(err.Error()+logged.String(), "hunter") {
			t.Errorf("error %v, log %s", err, &logged)
		}
	}
}

func TestLogNamesLiars(t *testing.T) {
	liar, good := serve(t, says(200, string(relay.EncodeRound(42, unhex(t, round123))))), serve(t, honest)
	var logged bytes.Buffer
	c := quicknet(liar.URL, good.URL)
	c.Log = slog.New(slog.NewTextHandler(&logged, nil))
	if _, err := c.Round(t.Context(), 42); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(logged.String(), "relay="+strings.TrimPrefix(liar.URL, "http://")) {
		t.Errorf("the log says %q", logged.String())
	}
}

func TestInfo(t *testing.T) {
	l, err := local.New(local.NewKey(), local.Config{ID: "other", Genesis: 5, Period: 7})
	if err != nil {
		t.Fatal(err)
	}
	good, other := serve(t, honest), serve(t, l.Handler().ServeHTTP)
	single := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/info" {
			http.Error(w, "unknown chain hash", http.StatusBadRequest)
			return
		}
		_, _ = w.Write(relay.EncodeInfo(beacon.Quicknet()))
	})
	for _, urls := range [][]string{{good.URL}, {single.URL}, {other.URL, good.URL}, {dead(t), other.URL, single.URL}} {
		if got, err := quicknet(urls...).Info(t.Context()); err != nil || got != beacon.Quicknet() {
			t.Errorf("%v: %+v, %v", urls, got, err)
		}
	}
	if _, err := quicknet(other.URL).Info(t.Context()); !errors.Is(err, relay.ErrChain) || !strings.Contains(err.Error(), fmt.Sprintf("it serves %x", l.Chain().Hash())) {
		t.Errorf("a relay of another chain: %v", err)
	}
	if got, err := (&relay.Client{URLs: []string{good.URL, other.URL}}).Find(t.Context(), l.Chain().Hash()); err != nil || got != l.Chain() {
		t.Errorf("found %+v, %v", got, err)
	}
}

func TestParseURL(t *testing.T) {
	for text, want := range map[string]string{
		"https://api.drand.sh": "https://api.drand.sh", "http://127.0.0.1:8090/": "http://127.0.0.1:8090", "https://example.com/drand//": "https://example.com/drand",
		"": "", "api.drand.sh": "", "ftp://api.drand.sh": "", "https://": "", "https://user@example.com": "", "https://example.com?key=1": "", "https://example.com?": "", "https://example.com#x": "", "http://a b": "",
	} {
		if got, err := relay.ParseURL(text); got != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, relay.ErrRelay) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range relay.Public() {
		if got, err := relay.ParseURL(text); err != nil || got != text {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}
