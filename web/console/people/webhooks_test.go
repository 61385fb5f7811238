package people_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofline/proofline/internal/consoletest"
)

// runWebhooks sends until the test ends.
func runWebhooks(s *consoletest.Site) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	stopped := make(chan struct{})
	go func() { defer close(stopped); s.Webhooks.Run(ctx) }()
	s.Cleanup(func() { cancel(); <-stopped })
}

// receiver counts the requests to a webhook.
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

// until requests a page until it has a text.
func until(s *consoletest.Site, who, path, text string) consoletest.Answer {
	s.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if a := s.Get(who, path).Want(http.StatusOK); strings.Contains(a.Body, text) || time.Now().After(end) {
			return a.Has(text)
		}
	}
}

// TestWebhookPages: a webhook is added, tested, changed, rotated, disabled and deleted, without scripts.
func TestWebhookPages(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	runWebhooks(s)
	url, got := receiver(t, http.StatusOK)
	s.Get(consoletest.Operator, "/console/webhooks").Want(http.StatusOK).Has("No webhooks yet")
	s.Get(consoletest.Operator, "/console/webhooks/new").Want(http.StatusOK).Has(`value="room.admitted"`, `name="url"`)
	s.Post(consoletest.Operator, "/console/webhooks/new", "url", "ftp://x", "event", "room.ended", "rooms", "a, B!", "description", "<i>").Want(http.StatusBadRequest).
		Has("must begin with https://", "is not the slug of a room", `value="room.ended" checked`, `value="ftp://x"`, `value="&lt;i&gt;"`).Lacks(`value="room.admitted" checked`)
	made := s.Post(consoletest.Operator, "/console/webhooks/new", "url", url, "event", "room.ended", "event", "room.paused", "rooms", "sale, spring", "description", "Shop <1>").Want(http.StatusOK)
	secret, path := made.Found(secretForm), made.Found(webhookPath)
	s.Get(consoletest.Operator, "/console/webhooks").Want(http.StatusOK).Has(url, "Shop &lt;1&gt;", "room.paused", "sale, spring", "in use").Lacks("whsec_")
	s.Get(consoletest.Operator, path).Want(http.StatusOK).Has("No deliveries yet.", `value="room.ended" checked`, `value="sale, spring"`).Lacks("whsec_", secret)

	tested := s.Post(consoletest.Operator, path+"/test")
	delivery, _, _ := strings.Cut(tested.Want(http.StatusSeeOther).Header.Get("Location"), "?")
	until(s, consoletest.Operator, delivery, ">200<").Has("test.ping", "&lt;b&gt;thanks&lt;/b&gt;", "msg_", "requested by operator@example.com").Lacks("<b>thanks", "whsec_")
	if got.Load() != 1 {
		t.Errorf("%d requests", got.Load())
	}
	s.Post(consoletest.Operator, delivery+"/redeliver").RedirectsTo(delivery + "?done=redelivered")
	until(s, consoletest.Operator, delivery, "2 attempts")
	until(s, consoletest.Operator, "/console/webhooks/deliveries?state=delivered&endpoint="+strings.TrimPrefix(path, "/console/webhooks/"), "test.ping") // the attempt counts before it has ended
	s.Get(consoletest.Operator, "/console/webhooks/deliveries?room=other").Want(http.StatusOK).Has("No deliveries match this filter.")
	s.Get(consoletest.Operator, "/console/webhooks/deliveries?after=x").Want(http.StatusBadRequest)
	s.Get(consoletest.Operator, "/console/webhooks/deliveries?endpoint=x").Want(http.StatusNotFound)

	s.Post(consoletest.Operator, path, "url", url+"/2", "description", "").RedirectsTo(path + "?done=webhook-saved")
	s.Get(consoletest.Operator, path).Has(`value="`+url+`/2"`).Lacks("checked", "sale, spring")
	s.Post(consoletest.Operator, path, "url", "x").Want(http.StatusBadRequest).Has("must be a URL")

	s.Post(consoletest.Operator, path+"/rotate").Want(http.StatusOK).Has("data-question").Lacks("whsec_")
	rotated := s.Post(consoletest.Operator, path+"/rotate", "confirmed", "1").Want(http.StatusOK)
	if again := rotated.Found(secretForm); again == secret {
		t.Error("the secret is the same")
	}
	s.Get(consoletest.Operator, path).Has("is also used until")
	s.Post(consoletest.Operator, path+"/disable").Want(http.StatusOK).Has("data-question")
	s.Post(consoletest.Operator, path+"/disable", "confirmed", "1").RedirectsTo(path + "?done=webhook-disabled")
	s.Get(consoletest.Operator, path).Has("It was disabled manually.", "/enable")
	s.Post(consoletest.Operator, path+"/test").RedirectsTo(path + "?done=webhook-is-disabled")
	s.Post(consoletest.Operator, delivery+"/redeliver").RedirectsTo(delivery + "?done=webhook-is-disabled")
	s.Post(consoletest.Operator, path+"/enable").RedirectsTo(path + "?done=webhook-enabled")
	s.Post(consoletest.Operator, path+"/delete").Want(http.StatusOK).Has("data-question")
	s.Post(consoletest.Operator, path+"/delete", "confirmed", "1").RedirectsTo("/console/webhooks?done=webhook-deleted")
	s.Get(consoletest.Operator, path).Want(http.StatusNotFound)
	s.Get(consoletest.Operator, delivery).Want(http.StatusOK) // the log is kept
	s.Get(consoletest.Operator, "/console/activity").Want(http.StatusOK).Has("tested a webhook", "Entries are kept for 90 days.").Lacks("whsec_")
}

// TestWebhookOfOthers: objects of another organization look as if they did not exist.
func TestWebhookOfOthers(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	url, _ := receiver(t, http.StatusOK)
	path := s.Post(consoletest.Operator, "/console/webhooks/new", "url", url).Want(http.StatusOK).Found(webhookPath)
	delivery, _, _ := strings.Cut(s.Post(consoletest.Operator, path+"/test").Want(http.StatusSeeOther).Header.Get("Location"), "?")
	none := "/console/webhooks/00000000-0000-8000-8000-0000000000ff"
	for _, p := range []string{path, delivery} {
		s.Get(consoletest.Stranger, p).Want(http.StatusNotFound)
		s.Get(consoletest.Viewer, p).Want(http.StatusForbidden)
	}
	for _, what := range []string{"", "/enable", "/disable", "/rotate", "/test", "/delete"} {
		theirs, nothing := s.Post(consoletest.Stranger, path+what, "confirmed", "1", "url", url), s.Post(consoletest.Stranger, none+what, "confirmed", "1", "url", url)
		if theirs.Status != http.StatusNotFound || theirs.Body != strings.ReplaceAll(nothing.Body, none, path) {
			t.Errorf("%s: %d, and %d for what does not exist", what, theirs.Status, nothing.Status)
		}
	}
	s.Post(consoletest.Stranger, delivery+"/redeliver").Want(http.StatusNotFound)
	s.Get(consoletest.Stranger, "/console/webhooks").Want(http.StatusOK).Has("No webhooks yet")
	s.Get(consoletest.Stranger, "/console/webhooks/deliveries").Want(http.StatusOK).Has("No deliveries yet.")
	s.Post(consoletest.Stranger, "/console/alerts", "endpoint", strings.TrimPrefix(path, "/console/webhooks/"), "no_show_percent", "30").Want(http.StatusBadRequest).Has("unknown webhook").Lacks(url)
	s.Get(consoletest.Operator, path).Want(http.StatusOK).Has("Disable")
}

// TestAlertPages: the recipients are set, tested and shown again.
func TestAlertPages(t *testing.T) {
	t.Parallel()
	bare := consoletest.New(t)
	url, _ := receiver(t, http.StatusOK)
	bare.Get(consoletest.Operator, "/console/alerts").Want(http.StatusOK).Has("There are no recipients yet.", "does not send mail", "There is no webhook yet.", `value="30"`).Lacks(`name="emails"`)
	bare.Post(consoletest.Operator, "/console/alerts/test").RedirectsTo("/console/alerts?done=alerts-nobody")
	bare.Post(consoletest.Operator, "/console/alerts", "emails", "a@example.com", "no_show_percent", "30").Want(http.StatusBadRequest).Has("cannot be used: this server cannot send mail")
	s := consoletest.New(t, consoletest.WithMail(t))
	id := strings.TrimPrefix(s.Post(consoletest.Operator, "/console/webhooks/new", "url", url, "description", "Shop").Want(http.StatusOK).Found(webhookPath), "/console/webhooks/")
	s.Post(consoletest.Operator, "/console/alerts", "emails", "a@example.com\nnobody", "kind", "line_full", "kind", "boredom", "endpoint", id, "no_show_percent", "200").Want(http.StatusBadRequest).
		Has("is not an e-mail address", "is not a kind of alert", "must be from 1 to 100", "a@example.com\nnobody", `value="line_full" checked`, `value="`+id+`" checked`)
	s.Post(consoletest.Operator, "/console/alerts", "no_show_percent", "many", "endpoint", "x").Want(http.StatusBadRequest).Has("must be a whole number", "must be webhooks from the list")
	s.Post(consoletest.Operator, "/console/alerts", "emails", " b@example.com, a@example.com\r\n", "kind", "line_full", "endpoint", id, "no_show_percent", "45").RedirectsTo("/console/alerts?done=alerts-saved")
	s.Get(consoletest.Operator, "/console/alerts?done=alerts-saved").Want(http.StatusOK).Has("a@example.com\nb@example.com", `value="line_full" checked`, `value="`+id+`" checked`, `value="45"`, "The alerts are saved.").
		Lacks(`value="no_shows" checked`, "There are no recipients yet.")
	s.Post(consoletest.Operator, "/console/alerts/test").RedirectsTo("/console/alerts?done=alerts-tested")
	s.Get(consoletest.Operator, "/console/webhooks/deliveries?endpoint=mail").Want(http.StatusOK).Has("a@example.com", "b@example.com", "waiting").Lacks(url)
	s.Get(consoletest.Viewer, "/console/alerts").Want(http.StatusForbidden)
}
