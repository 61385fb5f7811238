package witness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
)

// serve serves the witness and returns a log's client for it.
func (h *house) serve(t testing.TB, prefix string) *Client {
	t.Helper()
	s := httptest.NewServer(h.Handler(prefix))
	t.Cleanup(s.Close)
	return &Client{URL: s.URL + prefix, Key: h.Key(), Now: h.clock.Now}
}

type answer struct {
	status    int
	mediaType string
	body      string
}

func post(t testing.TB, url string, body io.Reader) answer {
	t.Helper()
	resp, err := http.Post(url, "text/plain", body)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, resp)
}

func get(t testing.TB, url string) answer {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, resp)
}

func read(t testing.TB, resp *http.Response) answer {
	t.Helper()
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.Header.Get("X-Content-Type-Options"); got != "nosniff" && resp.StatusCode < 500 && !slices.Contains([]int{http.StatusMethodNotAllowed, http.StatusNotFound}, resp.StatusCode) {
		t.Errorf("%s: X-Content-Type-Options %q", resp.Request.URL, got)
	}
	return answer{resp.StatusCode, resp.Header.Get("Content-Type"), string(b)}
}

// Every status of the protocol, as the witness sends it and as the log reads it.
func TestStatuses(t *testing.T) {
	l := newLog(t, testOrigin, 1, 40, 40)
	forked := newLog(t, testOrigin, 1, 40, 5)
	stranger := newLog(t, testOrigin, 2, 40, 40)
	unknown := newLog(t, "queue.example.com/r/other", 1, 40, 40)
	wrongly := bytes.Clone(l.signed(12))
	wrongly[len(wrongly)-10] ^= 1
	emptyTree := audit.Checkpoint{Origin: testOrigin, Root: l.checkpoint(1).Root}
	many := append(l.signed(12), strings.Repeat("— witness.example.net AAAAAAAAAAAA\n", 16)...)
	flood := append(l.signed(12), strings.Repeat("— witness.example.net AAAAAAAAAAAA\n", 100)...)
	huge := append(l.signed(12), strings.Repeat("— witness.example.net AAAAAAAAAAAA\n", MaxRequest/35)...)
	for _, c := range []struct {
		name   string
		has    int // size the witness has cosigned
		r      Request
		status int
		want   error
	}{
		{"first", 0, l.request(0, 12), 200, nil},
		{"first, of nothing", 0, l.request(0, 0), 200, nil},
		{"growth", 10, l.request(10, 12), 200, nil},
		{"the same again", 10, l.request(10, 10), 200, nil},
		{"16 unknown signatures", 10, Request{10, l.proof(10, 12), many}, 200, nil},
		{"old larger than new", 10, Request{13, nil, l.signed(12)}, 400, ErrMalformed},
		{"not a checkpoint", 10, Request{10, nil, l.sign("text\n")}, 400, ErrMalformed},
		{"more than 100 signatures", 10, Request{10, l.proof(10, 12), flood}, 400, ErrMalformed},
		{"unknown key", 10, stranger.request(10, 12), 403, ErrUnsigned},
		{"known key, wrong signature", 10, Request{10, l.proof(10, 12), wrongly}, 403, ErrUnsigned},
		{"unknown log", 10, unknown.request(0, 12), 404, ErrUnknownLog},
		{"old size too small", 10, l.request(5, 12), 409, &ConflictError{10}},
		{"old size too large", 10, l.request(11, 12), 409, &ConflictError{10}},
		{"old size of none", 10, l.request(0, 12), 409, &ConflictError{10}},
		{"has none", 0, l.request(5, 12), 409, &ConflictError{0}},
		{"another history with another old size", 10, forked.request(0, 12), 409, &ConflictError{10}},
		{"larger than any request", 10, Request{10, l.proof(10, 12), huge}, 413, ErrTooLarge},
		{"another history", 10, forked.request(10, 12), 422, ErrInconsistent},
		{"another history of the same size", 10, forked.request(10, 10), 422, ErrInconsistent},
		{"no proof", 10, Request{10, nil, l.signed(12)}, 422, ErrInconsistent},
		{"proof from none", 0, Request{0, l.proof(5, 12), l.signed(12)}, 422, ErrInconsistent},
		{"empty tree with another root", 0, Request{0, nil, l.sign(emptyTree.Marshal())}, 422, ErrInconsistent},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t, l)
			if c.has > 0 {
				h.cosigned(t, l.request(0, c.has))
			}
			h.clock.add(time.Second)
			client := h.serve(t, "")
			cosignature, err := client.AddCheckpoint(t.Context(), c.r.Old, c.r.Proof, c.r.Checkpoint)
			var conflict, wanted *ConflictError
			switch {
			case errors.As(c.want, &wanted):
				if !errors.As(err, &conflict) || *conflict != *wanted {
					t.Errorf("log: %v, want %v", err, c.want)
				}
			case !errors.Is(err, c.want):
				t.Errorf("log: %v, want %v", err, c.want)
			case err == nil && cosignature.Time() != h.clock.Now().Unix():
				t.Errorf("log: time %d", cosignature.Time())
			}
			if err != nil && (cosignature != audit.Cosignature{} || !strings.Contains(err.Error(), testName)) {
				t.Errorf("log: %x, %v", cosignature, err)
			}
			if c.status == 200 {
				h.clock.add(-time.Second)
				return // if it were sent again, it would be a different request
			}
			got := post(t, client.URL+"/add-checkpoint", bytes.NewReader(c.r.Marshal()))
			if got.status != c.status || c.status == 409 != (got.mediaType == "text/x.tlog.size") {
				t.Errorf("witness: %+v, want status %d", got, c.status)
			}
			if c.status == 409 && got.body != fmt.Sprintf("%d\n", c.has) {
				t.Errorf("witness: size %q", got.body)
			}
		})
	}
}

// TestOnTheWire compares with the bytes that another implementation of a log would send and read.
func TestOnTheWire(t *testing.T) {
	l := newLog(t, testOrigin, 1, 40, 40)
	h := newHouse(t, l)
	client := h.serve(t, "/witness")
	url := client.URL + "/add-checkpoint"
	for name, body := range malformed {
		if got := post(t, url, strings.NewReader(body+string(l.signed(12)))); got.status != 400 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// A body of unknown length that is too large.
	endless := io.MultiReader(bytes.NewReader(l.request(0, 12).Marshal()), strings.NewReader(strings.Repeat("x", MaxRequest)))
	if got := post(t, url, endless); got.status != 413 {
		t.Errorf("too large: %+v", got)
	}
	for _, method := range []string{"GET", "PUT", "DELETE", "OPTIONS"} {
		req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, resp); got.status != 405 {
			t.Errorf("%s: %+v", method, got)
		}
	}
	got := post(t, url, bytes.NewReader(l.request(0, 12).Marshal()))
	if got.status != 200 || got.mediaType != "text/plain; charset=utf-8" || !strings.HasPrefix(got.body, "— "+testName+" ") || strings.Count(got.body, "\n") != 1 {
		t.Fatalf("%+v", got)
	}
	n, err := note.Open(append(l.signed(12), got.body...), note.VerifierList(h.Key()))
	if err != nil || len(n.Sigs) != 1 || len(n.UnverifiedSigs) != 1 {
		t.Errorf("%+v, %v", n, err)
	}
	if got := get(t, strings.TrimSuffix(url, "/witness/add-checkpoint")+"/healthz"); got.status != 404 {
		t.Errorf("outside of the prefix: %+v", got)
	}
}

func TestMonitor(t *testing.T) {
	l := newLog(t, testOrigin, 1, 40, 40)
	h := newHouse(t, l)
	client := h.serve(t, "")
	address := client.URL + "/" + LogID(testOrigin) + "/checkpoint"
	if got := get(t, address); got.status != 404 {
		t.Errorf("before: %+v", got)
	}
	c, err := client.AddCheckpoint(t.Context(), 0, nil, append(l.signed(12), "— witness.example.net AAAAAAAAAAAA\n"...))
	if err != nil {
		t.Fatal(err)
	}
	got := get(t, address)
	if want := string(l.signed(12)) + c.Line(testName); got.status != 200 || got.body != want {
		t.Errorf("%+v, want %q", got, want)
	}
	h.Follow(Logs{}) // a witness shows what it has cosigned, even for a log that it no longer follows
	if got := get(t, address); got.status != 200 {
		t.Errorf("%+v", got)
	}
	for _, id := range []string{strings.ToUpper(LogID(testOrigin)), LogID("other"), "..%2f..%2flock", "x", LogID(testOrigin)[1:]} {
		if got := get(t, client.URL+"/"+id+"/checkpoint"); got.status != 404 {
			t.Errorf("%s: %+v", id, got)
		}
	}
	if err := os.WriteFile(h.store.path(LogID("damaged")), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := get(t, client.URL+"/"+LogID("damaged")+"/checkpoint"); got.status != 500 || got.body != "internal error\n" {
		t.Errorf("damaged: %+v", got)
	}
}

func TestPages(t *testing.T) {
	l := newLog(t, testOrigin, 1, 40, 40)
	quiet := newLog(t, "queue.example.com/r/quiet", 1, 1, 1)
	broken := newLog(t, "queue.example.com/r/broken", 1, 1, 1)
	h := newHouse(t, l, quiet, broken)
	h.cosigned(t, l.request(0, 10))
	h.refused(t, Request{10, nil, newLog(t, testOrigin, 1, 10, 5).signed(10)}, ErrInconsistent)
	if err := os.WriteFile(h.store.path(LogID("queue.example.com/r/broken")), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	client := h.serve(t, "")
	got := get(t, client.URL)
	for _, want := range []string{
		h.Key().String(), testOrigin, "cosigned at size 10, 2023-03-20T12:25:47Z", LogID(testOrigin) + "/checkpoint",
		"checkpoint pairs that prove it: 1\n", "queue.example.com/r/quiet\n  nothing cosigned yet", "queue.example.com/r/broken\n  its state is damaged",
	} {
		if !strings.Contains(got.body, want) {
			t.Errorf("lacks %q:\n%s", want, got.body)
		}
	}
	if got.status != 200 || got.mediaType != "text/plain; charset=utf-8" {
		t.Errorf("%+v", got)
	}
	if got := get(t, client.URL+"/healthz"); got.status != 200 || got.body != "ok\n" {
		t.Errorf("%+v", got)
	}
	h.store.dir = filepath.Join(h.dir, "gone")
	if got := get(t, client.URL+"/healthz"); got.status != 503 {
		t.Errorf("%+v", got)
	}
}

// If the witness cannot answer, the log asks again later.
func TestUnavailable(t *testing.T) {
	l := newLog(t, testOrigin, 1, 40, 40)
	h := newHouse(t, l)
	client := h.serve(t, "")
	h.cosigned(t, l.request(0, 10))
	ask := func() error {
		_, err := client.AddCheckpoint(t.Context(), 10, l.proof(10, 12), l.signed(12))
		return err
	}
	h.clock.add(-time.Hour)
	var retry *RetryError
	if err := ask(); !errors.Is(err, ErrUnavailable) || !errors.As(err, &retry) || *retry != (RetryError{503, time.Second}) {
		t.Errorf("clock: %v", err)
	}
	h.clock.add(time.Hour)
	h.store.step = func(string) error { return errCrash }
	if err := ask(); !errors.Is(err, ErrUnavailable) || !errors.As(err, &retry) || *retry != (RetryError{500, 0}) {
		t.Errorf("disk: %v", err)
	}
	h.store.step = func(string) error { return nil }
	if err := ask(); err != nil {
		t.Errorf("repaired: %v", err)
	}
}

// A client must not trust the responses of a faulty witness.
func TestClientAgainstBadWitnesses(t *testing.T) {
	l := newLog(t, testOrigin, 1, 40, 40)
	key, namesake := testKey(t, testName, 9), testKey(t, testName, 8)
	stranger := testKey(t, "stranger.example.org", 9)
	now := testTime.Unix()
	text, other := l.checkpoint(12).Marshal(), l.checkpoint(13).Marshal()
	good := key.cosign(text, now).Line(testName)
	changed := strings.Replace(good, "A", "B", 1)
	asLog, err := note.NewSigner("PRIVATE+KEY+" + testName + "+" + strings.SplitN(logKey(t, testName), "+", 3)[1] + "+AQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJ")
	if err != nil {
		t.Fatal(err)
	}
	signedAsLog, err := note.Sign(&note.Note{Text: text}, asLog)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		status int
		header http.Header
		body   string
		want   error // nil for a cosignature
	}{
		{"good", 200, nil, good, nil},
		{"good, after cosignatures by unknown keys", 200, nil, stranger.cosign(text, now).Line(stranger.Name()) + "— x AAAAAAAA\n" + good, nil},
		{"good, of another media type", 200, http.Header{"Content-Type": {"application/octet-stream"}}, good, nil},
		{"a minute early", 200, nil, key.cosign(text, now-60).Line(testName), nil},
		{"a minute late", 200, nil, key.cosign(text, now+60).Line(testName), nil},
		{"more than a minute early", 200, nil, key.cosign(text, now-61).Line(testName), ErrAnswer},
		{"more than a minute late", 200, nil, key.cosign(text, now+61).Line(testName), ErrAnswer},
		{"at the end of time", 200, nil, key.cosign(text, 1<<63-1).Line(testName), ErrAnswer},
		{"without a time", 200, nil, key.cosign(text, 0).Line(testName), ErrAnswer},
		{"empty", 200, nil, "", ErrAnswer},
		{"no line", 200, nil, "\n", ErrAnswer},
		{"without its line break", 200, nil, strings.TrimSuffix(good, "\n"), ErrAnswer},
		{"page of a proxy", 200, nil, "<html>sign in</html>\n", ErrAnswer},
		{"only by an unknown key", 200, nil, stranger.cosign(text, now).Line(stranger.Name()), ErrAnswer},
		{"another key of the name", 200, nil, namesake.cosign(text, now).Line(testName), ErrAnswer},
		{"changed", 200, nil, changed, ErrAnswer},
		{"of another checkpoint", 200, nil, key.cosign(other, now).Line(testName), ErrAnswer},
		{"signed as a log", 200, nil, string(bytes.SplitAfter(signedAsLog, []byte("\n\n"))[1]), ErrAnswer},
		{"text moved", 200, nil, "\n" + key.cosign(text+"\n", now).Line(testName), ErrAnswer},
		{"text moved behind a line", 200, nil, "more\n\n" + key.cosign(text+"\nmore\n", now).Line(testName), ErrAnswer},
		{"too long", 200, nil, good + strings.Repeat("— x AAAAAAAA\n", maxAnswer/13), ErrAnswer},
		{"nothing created", 201, nil, good, ErrAnswer},
		{"redirect", 307, http.Header{"Location": {"/elsewhere"}}, "", ErrAnswer},
		{"teapot", 418, nil, "", ErrAnswer},
		{"bad request", 400, nil, "x", ErrMalformed},
		{"forbidden", 403, nil, "x", ErrUnsigned},
		{"not found", 404, nil, "x", ErrUnknownLog},
		{"too large", 413, nil, "x", ErrTooLarge},
		{"unprocessable", 422, nil, "x", ErrInconsistent},
		{"conflict without a media type", 409, nil, "10\n", ErrAnswer},
		{"conflict without a size", 409, http.Header{"Content-Type": {sizeType}}, "", ErrAnswer},
		{"conflict without a line break", 409, http.Header{"Content-Type": {sizeType}}, "10", ErrAnswer},
		{"conflict with a leading zero", 409, http.Header{"Content-Type": {sizeType}}, "010\n", ErrAnswer},
		{"conflict with a sign", 409, http.Header{"Content-Type": {sizeType}}, "-1\n", ErrAnswer},
		{"conflict with two lines", 409, http.Header{"Content-Type": {sizeType}}, "10\n10\n", ErrAnswer},
		{"conflict beyond 64 bits", 409, http.Header{"Content-Type": {sizeType}}, "18446744073709551616\n", ErrAnswer},
		{"conflict", 409, http.Header{"Content-Type": {sizeType}}, "10\n", &ConflictError{10}},
		{"conflict with a parameter", 409, http.Header{"Content-Type": {sizeType + "; charset=utf-8"}}, "0\n", &ConflictError{0}},
		{"too many requests", 429, http.Header{"Retry-After": {"7"}}, "", &RetryError{429, 7 * time.Second}},
		{"too many requests, for ages", 429, http.Header{"Retry-After": {"99999999999999999999"}}, "", &RetryError{429, 65535 * time.Second}},
		{"internal error", 500, nil, good, &RetryError{500, 0}},
		{"gateway", 502, http.Header{"Retry-After": {"Wed, 21 Oct 2026 07:28:00 GMT"}}, "", &RetryError{502, 0}},
		{"unavailable", 503, nil, "", &RetryError{503, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/add-checkpoint" {
					t.Errorf("asked for %s", r.URL.Path)
				}
				rw.Header()["Content-Type"] = []string{"text/plain"}
				for name, values := range c.header {
					rw.Header()[name] = values
				}
				rw.WriteHeader(c.status)
				_, _ = io.WriteString(rw, c.body)
			}))
			defer s.Close()
			client := &Client{URL: s.URL + "/", Key: key.Witness, Now: func() time.Time { return testTime }, HTTP: s.Client()}
			got, err := client.AddCheckpoint(t.Context(), 0, nil, l.signed(12))
			if c.want == nil {
				if err != nil || client.Key.VerifyCosignature(text, got) != nil {
					t.Errorf("%x, %v", got, err)
				}
				return
			}
			if got != (audit.Cosignature{}) || err == nil {
				t.Fatalf("believed %x, %v", got, err)
			}
			var conflict, wantConflict *ConflictError
			var retry, wantRetry *RetryError
			switch {
			case errors.As(c.want, &wantConflict):
				if !errors.As(err, &conflict) || *conflict != *wantConflict {
					t.Errorf("%v, want %v", err, c.want)
				}
			case errors.As(c.want, &wantRetry):
				if !errors.As(err, &retry) || *retry != *wantRetry || !errors.Is(err, ErrUnavailable) {
					t.Errorf("%v, want %v", err, c.want)
				}
			case !errors.Is(err, c.want):
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

// logKey returns the vkey of a log that uses the witness's own key.
func logKey(t testing.TB, origin string) string {
	t.Helper()
	_, vkey, err := audit.NewSigner(origin, bytes.Repeat([]byte{9}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return vkey
}

// The new cosignature, not one that the checkpoint already has.
func TestClientWantsANewCosignature(t *testing.T) {
	l := newLog(t, testOrigin, 1, 40, 40)
	h := newHouse(t, l)
	client := h.serve(t, "")
	first, err := client.AddCheckpoint(t.Context(), 0, nil, l.signed(12))
	if err != nil {
		t.Fatal(err)
	}
	h.clock.add(time.Hour)
	second, err := client.AddCheckpoint(t.Context(), 12, nil, append(l.signed(12), first.Line(testName)...))
	if err != nil || second.Time() != first.Time()+3600 {
		t.Errorf("time %d after %d, %v", second.Time(), first.Time(), err)
	}
}

func TestClientWithoutAnAnswer(t *testing.T) {
	l := newLog(t, testOrigin, 1, 40, 40)
	key := testKey(t, testName, 9)
	block := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-block:
		case <-r.Context().Done():
		}
	}))
	defer silent.Close()
	defer close(block)
	cut := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Length", "500")
		_, _ = io.WriteString(rw, key.cosign(l.checkpoint(12).Marshal(), testTime.Unix()).Line(testName))
	}))
	defer cut.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, url := range map[string]string{"silent": silent.URL, "cut": cut.URL, "gone": gone.URL} {
		client := &Client{URL: url, Key: key.Witness, Now: func() time.Time { return testTime }, Timeout: 100 * time.Millisecond}
		if got, err := client.AddCheckpoint(t.Context(), 0, nil, l.signed(12)); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %x, %v", name, got, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := client.AddCheckpoint(ctx, 0, nil, l.signed(12)); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnavailable) {
			t.Errorf("%s, cancelled: %v", name, err)
		}
	}
	client := &Client{URL: gone.URL, Key: key.Witness, Now: time.Now}
	for name, c := range map[string]struct {
		r    Request
		want error
	}{
		"no signatures":   {Request{Checkpoint: []byte("text\n")}, ErrMalformed},
		"too many hashes": {Request{Old: 1, Proof: make([]audit.Hash, MaxProof+1), Checkpoint: l.signed(12)}, ErrMalformed},
		"too large":       {Request{Checkpoint: append(l.signed(12), make([]byte, MaxRequest)...)}, ErrTooLarge},
	} {
		if _, err := client.AddCheckpoint(t.Context(), c.r.Old, c.r.Proof, c.r.Checkpoint); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	client.URL = "://"
	if _, err := client.AddCheckpoint(t.Context(), 0, nil, l.signed(12)); err == nil {
		t.Error("no error for a bad address")
	}
}

// The client must cope with any response of a server.
func FuzzAnswer(f *testing.F) {
	l := newLog(f, testOrigin, 1, 40, 40)
	key := testKey(f, testName, 9)
	text := l.checkpoint(12).Marshal()
	client := &Client{Key: key.Witness, Now: func() time.Time { return testTime }}
	want := key.cosign(text, testTime.Unix())
	f.Add([]byte(want.Line(testName)))
	f.Add([]byte("\n" + key.cosign(text+"\n", testTime.Unix()).Line(testName)))
	f.Fuzz(func(t *testing.T, answer []byte) {
		if got, err := client.verify(text, answer); err == nil && got != want {
			t.Errorf("believed %x in %q", got, answer)
		}
	})
}
