package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/internal/otlptest"
)

// TestTraces joins a room of a server that sends traces, with a beacon, a witness, a webhook and a mail.
func TestTraces(t *testing.T) {
	t.Parallel()
	dir, collector := tempDir(t), otlptest.Start(t)
	beacon := launch(t, nil, "beacon", "serve", "--addr", "127.0.0.1:0", "--period", "1s", "--key",
		filepath.Join(dir, "beacon-key"))
	beacon.listens()
	chain := beacon.until(`chain +([0-9a-f]{64})`, startTime)
	_, key, witness := runWitness(t, "one.example.org", filepath.Join(dir, "witness"), "--addr", "127.0.0.1:0")
	smtp, mail := receiveMail(t)
	data := filepath.Join(dir, "data")
	p := startServer(t, append(collector.Env(), "PROOFLINE_SMTP=smtp://"+smtp+"?from=alerts@example.org"), "--data", data,
		"--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--trusted-proxies", "127.0.0.0/8", "--log-level", "debug",
		"--log-format", "json", "--webhook-networks", "127.0.0.0/8", "--beacon-relays", beacon.url, "--beacon-chain", chain,
		"--witnesses", key+"="+witness)
	admin := manager(t, p, data)
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(hook.Close)
	call := func(path, body string) {
		t.Helper()
		method := http.MethodPost
		if path == "/v1/alerts" {
			method = http.MethodPut
		}
		answer, err := admin.Do(t.Context(), method, path, []byte(body))
		if err != nil || answer.Status >= http.StatusBadRequest {
			t.Fatal(path, answer.Status, string(answer.Body), err)
		}
	}
	call("/v1/webhooks", `{"url": "`+hook.URL+`/secret-of-the-hook", "events": ["room.window_drawn"]}`)
	call("/v1/alerts", `{"emails": ["anna.berger@example.org"]}`)
	call("/v1/alerts/test", ``)
	room := createRoom(t, admin, "traced")

	id := make([]byte, 24)
	_, _ = rand.Read(id)
	trace, parent := hex.EncodeToString(id[:16]), hex.EncodeToString(id[16:])
	answer, request := joinTraced(t, room.URL+"/join?q=secret-query", "00-"+trace+"-"+parent+"-01")
	if answer.StatusCode != http.StatusCreated {
		t.Fatal(answer.Status)
	}
	var joined api.Joined
	if err := json.NewDecoder(answer.Body).Decode(&joined); err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	<-mail
	var span *otlptest.Span
	want := "POST /r/{slug}/join\n  append\n    apply\n    commit\n    lock\n  wait for the batch"
	waitFor(t, "the spans of the join", func() bool {
		list := collector.Spans("POST /r/{slug}/join")
		if len(list) == 0 {
			return false
		}
		span = list[0]
		return collector.Tree(span) == want
	})
	if hex.EncodeToString(span.GetTraceId()) != trace || hex.EncodeToString(span.GetParentSpanId()) != parent {
		t.Errorf("the span is not in the trace that the proxy names: %v", span)
	}
	if span.Attribute("proofline.room") != "traced" || span.Attribute("http.response.status_code") != "201" ||
		span.Resource["service.name"] != "queue" {
		t.Errorf("%v, %v", span.GetAttributes(), span.Resource)
	}
	for _, name := range []string{"freeze", "draw", "fetch a beacon round", "ask a witness", "send a webhook", "send a mail"} {
		waitFor(t, "a span "+name, func() bool { return len(collector.Spans(name)) > 0 })
	}
	for _, line := range strings.Split(p.said(), "\n") {
		if strings.Contains(line, `"/r/traced/join"`) && (!strings.Contains(line, `"trace_id":"`+trace+`"`) ||
			!strings.Contains(line, `"request_id":"`)) {
			t.Errorf("the line of the join does not name its trace: %s", line)
		}
	}
	metrics := strings.TrimSuffix(p.until(`metrics on (http://\S+)`, startTime), "/metrics")
	for _, path := range []string{"/livez", "/readyz"} {
		if answer := get(t, metrics+path); answer.StatusCode != http.StatusOK {
			t.Errorf("%s on the address of metrics: %s", path, answer.Status)
		}
	}
	get(t, p.url+"/r/"+joined.Ticket) // no room
	waitFor(t, "a span of a page", func() bool { return len(collector.Spans("GET /r/{slug}")) > 0 })
	p.stop()
	for _, secret := range []string{joined.Ticket, joined.Secret, "secret-query", "secret-of-the-hook", "anna.berger",
		request.UserAgent(), "198.51.100.7", hook.URL} {
		if secret == "" || bytes.Contains(collector.Received(), []byte(secret)) {
			t.Errorf("%q is in a trace, or was not sent", secret)
		}
	}
}

// joinTraced joins a room as a proxy forwards it.
func joinTraced(t *testing.T, url, parent string) (*http.Response, *http.Request) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Traceparent", parent)
	r.Header.Set("X-Forwarded-For", "198.51.100.7")
	r.Header.Set("User-Agent", "a browser of somebody")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return answer, r
}

func get(t *testing.T, url string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer
}
