package console

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/console/webhook/pgwebhook"
	"github.com/proofline/proofline/room/keys"
)

// newWebhooks makes webhooks that may lead to this machine, and are not sent unless
// a test runs them.
func newWebhooks(t testing.TB, d *control.Rooms, pool *pgxpool.Pool) *webhook.Service {
	t.Helper()
	key, err := keys.ParseMasterKey(keys.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	return webhook.New(webhook.Options{
		Store: pgwebhook.NewStore(pool), Rooms: d.Rooms, Sealer: key, ActivityLog: d.Activity,
		Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
}

// runWebhooks sends until the test ends.
func (s *site) runWebhooks() {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	stopped := make(chan struct{})
	go func() { defer close(stopped); s.Webhooks.Run(ctx) }()
	s.Cleanup(func() { cancel(); <-stopped })
}

// receiver counts what comes to a webhook.
func receiver(t testing.TB, status int) (url string, got *atomic.Int32) {
	t.Helper()
	got = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got.Add(1)
		w.WriteHeader(status)
		fmt.Fprint(w, "<b>thanks</b>")
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

var (
	secretForm  = regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`)
	webhookPath = regexp.MustCompile(`href="(/console/webhooks/[0-9a-f-]{36})"`)
)

// found returns the first match in a page.
func (a answer) found(form *regexp.Regexp) string {
	a.Helper()
	m := form.FindStringSubmatch(strings.ReplaceAll(a.body, "&#43;", "+"))
	if m == nil {
		a.Fatalf("no %s in the page:\n%s", form, a.body)
	}
	return m[len(m)-1]
}

// until gets a page until it has a text.
func (s *site) until(who, path, text string) answer {
	s.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if a := s.get(who, path).want(http.StatusOK); strings.Contains(a.body, text) || time.Now().After(end) {
			return a.has(text)
		}
	}
}

// TestWebhookPages: a webhook is added, tried out, changed, rotated, disabled
// and deleted, without scripts.
func TestWebhookPages(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	s.runWebhooks()
	url, got := receiver(t, http.StatusOK)
	s.get(operator, "/console/webhooks").want(http.StatusOK).has("No webhooks yet")
	s.get(operator, "/console/webhooks/new").want(http.StatusOK).has(`value="room.admitted"`, `name="url"`)
	s.post(operator, "/console/webhooks/new", "url", "ftp://x", "event", "room.ended", "rooms", "a, B!", "description", "<i>").want(http.StatusBadRequest).
		has("must begin with https://", "is not the slug of a room", `value="room.ended" checked`, `value="ftp://x"`, `value="&lt;i&gt;"`).lacks(`value="room.admitted" checked`)
	made := s.post(operator, "/console/webhooks/new", "url", url, "event", "room.ended", "event", "room.paused", "rooms", "sale, spring", "description", "Shop <1>").want(http.StatusOK)
	secret, path := made.found(secretForm), made.found(webhookPath)
	s.get(operator, "/console/webhooks").want(http.StatusOK).has(url, "Shop &lt;1&gt;", "room.paused", "sale, spring", "in use").lacks("whsec_")
	s.get(operator, path).want(http.StatusOK).has("Nothing was sent to it yet.", `value="room.ended" checked`, `value="sale, spring"`).lacks("whsec_", secret)

	tested := s.post(operator, path+"/test")
	delivery, _, _ := strings.Cut(tested.want(http.StatusSeeOther).header.Get("Location"), "?")
	s.until(operator, delivery, ">200<").has("test.ping", "&lt;b&gt;thanks&lt;/b&gt;", "msg_", "requested by operator@example.com").lacks("<b>thanks", "whsec_")
	if got.Load() != 1 {
		t.Errorf("%d requests", got.Load())
	}
	s.post(operator, delivery+"/redeliver").leadsTo(delivery + "?done=redelivered")
	s.until(operator, delivery, "2 attempts")
	s.until(operator, "/console/webhooks/deliveries?state=delivered&endpoint="+strings.TrimPrefix(path, "/console/webhooks/"), "test.ping") // the attempt counts before it is over
	s.get(operator, "/console/webhooks/deliveries?room=other").want(http.StatusOK).has("No delivery is like that.")
	s.get(operator, "/console/webhooks/deliveries?after=x").want(http.StatusBadRequest)
	s.get(operator, "/console/webhooks/deliveries?endpoint=x").want(http.StatusNotFound)

	s.post(operator, path, "url", url+"/2", "description", "").leadsTo(path + "?done=webhook-saved")
	s.get(operator, path).has(`value="`+url+`/2"`).lacks("checked", "sale, spring")
	s.post(operator, path, "url", "x").want(http.StatusBadRequest).has("must be a URL")

	s.post(operator, path+"/rotate").want(http.StatusOK).has("data-question").lacks("whsec_")
	rotated := s.post(operator, path+"/rotate", "confirmed", "1").want(http.StatusOK)
	if again := rotated.found(secretForm); again == secret {
		t.Error("the secret is the same")
	}
	s.get(operator, path).has("signs too until")
	s.post(operator, path+"/disable").want(http.StatusOK).has("data-question")
	s.post(operator, path+"/disable", "confirmed", "1").leadsTo(path + "?done=webhook-disabled")
	s.get(operator, path).has("It was disabled by hand.", "/enable")
	s.post(operator, path+"/test").leadsTo(path + "?done=webhook-is-disabled")
	s.post(operator, delivery+"/redeliver").leadsTo(delivery + "?done=webhook-is-disabled")
	s.post(operator, path+"/enable").leadsTo(path + "?done=webhook-enabled")
	s.post(operator, path+"/delete").want(http.StatusOK).has("data-question")
	s.post(operator, path+"/delete", "confirmed", "1").leadsTo("/console/webhooks?done=webhook-deleted")
	s.get(operator, path).want(http.StatusNotFound)
	s.get(operator, delivery).want(http.StatusOK) // the log stays
	s.get(operator, "/console/acts").want(http.StatusOK).has("tested a webhook").lacks("whsec_")
}

// TestWebhookOfOthers: what another organization has is as what does not exist.
func TestWebhookOfOthers(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	url, _ := receiver(t, http.StatusOK)
	path := s.post(operator, "/console/webhooks/new", "url", url).want(http.StatusOK).found(webhookPath)
	delivery, _, _ := strings.Cut(s.post(operator, path+"/test").want(http.StatusSeeOther).header.Get("Location"), "?")
	none := "/console/webhooks/00000000-0000-8000-8000-0000000000ff"
	for _, p := range []string{path, delivery} {
		s.get(stranger, p).want(http.StatusNotFound)
		s.get(viewer, p).want(http.StatusForbidden)
	}
	for _, what := range []string{"", "/enable", "/disable", "/rotate", "/test", "/delete"} {
		theirs, nothing := s.post(stranger, path+what, "confirmed", "1", "url", url), s.post(stranger, none+what, "confirmed", "1", "url", url)
		if theirs.status != http.StatusNotFound || theirs.body != strings.ReplaceAll(nothing.body, none, path) {
			t.Errorf("%s: %d, and %d for what does not exist", what, theirs.status, nothing.status)
		}
	}
	s.post(stranger, delivery+"/redeliver").want(http.StatusNotFound)
	s.get(stranger, "/console/webhooks").want(http.StatusOK).has("No webhooks yet")
	s.get(stranger, "/console/webhooks/deliveries").want(http.StatusOK).has("Nothing was sent yet.")
	s.post(stranger, "/console/alerts", "endpoint", strings.TrimPrefix(path, "/console/webhooks/"), "no_show_percent", "30").want(http.StatusBadRequest).has("unknown webhook").lacks(url)
	s.get(operator, path).want(http.StatusOK).has("Disable")
}

// TestAlertPages: who is told is set, tested and read again.
func TestAlertPages(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	url, _ := receiver(t, http.StatusOK)
	s.get(operator, "/console/alerts").want(http.StatusOK).has("Nobody is told yet.", "sends no mail", "There is no webhook yet.", `value="30"`).lacks(`name="emails"`)
	s.post(operator, "/console/alerts/test").leadsTo("/console/alerts?done=alerts-nobody")
	s.post(operator, "/console/alerts", "emails", "a@example.com", "no_show_percent", "30").want(http.StatusBadRequest).has("cannot be used: this server cannot send mail")
	s.Webhooks.Mail = &webhook.SMTP{Host: "127.0.0.1", Port: 1}
	id := strings.TrimPrefix(s.post(operator, "/console/webhooks/new", "url", url, "description", "Shop").want(http.StatusOK).found(webhookPath), "/console/webhooks/")
	s.post(operator, "/console/alerts", "emails", "a@example.com\nnobody", "kind", "line_full", "kind", "boredom", "endpoint", id, "no_show_percent", "200").want(http.StatusBadRequest).
		has("is not an e-mail address", "is not a kind of alert", "must be from 1 to 100", "a@example.com\nnobody", `value="line_full" checked`, `value="`+id+`" checked`)
	s.post(operator, "/console/alerts", "no_show_percent", "many", "endpoint", "x").want(http.StatusBadRequest).has("must be a whole number", "must be webhooks of the list")
	s.post(operator, "/console/alerts", "emails", " b@example.com, a@example.com\r\n", "kind", "line_full", "endpoint", id, "no_show_percent", "45").leadsTo("/console/alerts?done=alerts-saved")
	s.get(operator, "/console/alerts?done=alerts-saved").want(http.StatusOK).has("a@example.com\nb@example.com", `value="line_full" checked`, `value="`+id+`" checked`, `value="45"`, "The alerts are saved.").
		lacks(`value="no_shows" checked`, "Nobody is told yet.")
	s.post(operator, "/console/alerts/test").leadsTo("/console/alerts?done=alerts-tested")
	s.get(operator, "/console/webhooks/deliveries?endpoint=mail").want(http.StatusOK).has("a@example.com", "b@example.com", "waiting").lacks(url)
	for _, k := range webhook.AlertKinds() {
		if alertWords[k] == "" {
			t.Errorf("no words for %s", k)
		}
	}
	for _, k := range webhook.EventKinds() {
		if eventWords[k] == "" {
			t.Errorf("no words for %s", k)
		}
	}
	s.get(viewer, "/console/alerts").want(http.StatusForbidden)
}
