package webhook

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/outbound"
)

// mailServer is an SMTP server that records mails.
type mailServer struct {
	addr     string
	listener net.Listener
	refuse   func(rcpt string) string // returns the response to RCPT; "": accept

	mu   sync.Mutex
	got  []letterGot
	auth []string
}

type letterGot struct {
	From, To string
	Header   mail.Header
	Text     string
}

func newMailServer(t testing.TB) *mailServer {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &mailServer{addr: l.Addr().String(), listener: l}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { defer c.Close(); s.serve(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); serving.Wait() })
	return s
}

// serve implements as much of RFC 5321 as the client needs.
func (s *mailServer) serve(c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	in := bufio.NewReader(c)
	say := func(line string) { fmt.Fprintf(c, "%s\r\n", line) }
	say("220 test ESMTP")
	var m letterGot
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		verb, rest, _ := strings.Cut(line, " ")
		switch strings.ToUpper(verb) {
		case "EHLO":
			say("250-test")
			say("250 AUTH PLAIN LOGIN")
		case "AUTH":
			s.mu.Lock()
			s.auth = append(s.auth, rest)
			s.mu.Unlock()
			say("235 ok")
		case "MAIL":
			m = letterGot{From: rest}
			say("250 ok")
		case "RCPT":
			if m.To = rest; s.refuse != nil && s.refuse(rest) != "" {
				say(s.refuse(rest))
				continue
			}
			say("250 ok")
		case "DATA":
			say("354 go on")
			s.take(in, &m)
			say("250 taken")
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}

func (s *mailServer) take(in *bufio.Reader, m *letterGot) {
	var text strings.Builder
	for {
		line, err := in.ReadString('\n')
		if err != nil || line == ".\r\n" {
			break
		}
		text.WriteString(strings.TrimPrefix(line, "."))
	}
	if parsed, err := mail.ReadMessage(strings.NewReader(text.String())); err == nil {
		m.Header = parsed.Header
		body, _ := io.ReadAll(quotedprintable.NewReader(parsed.Body))
		m.Text = string(body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, *m)
}

func (s *mailServer) letters() []letterGot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]letterGot(nil), s.got...)
}

// smtp returns the configuration for sending to the server.
func (s *mailServer) smtp(t testing.TB) *SMTP {
	t.Helper()
	m, err := ParseSMTP("smtp://user:pa%3Ass@" + s.addr + "?from=Alerts+<alerts@example.com>")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestAlertMail checks that an alert is sent as a plain text mail, at most once in 15 minutes.
func TestAlertMail(t *testing.T) {
	t.Parallel()
	s := newMailServer(t)
	b := newBench(t, func(o *Options) { o.Mail = s.smtp(t) })
	in := newReceiver(t, nil)
	e, secret := b.endpoint(in.URL, RoomEnded)
	ctx := t.Context()
	err := b.Alerts.SetSettings(ctx, operator, AlertSettings{Emails: []string{"b@example.com", "a@example.com",
		"b@example.com"}, Endpoints: []uuid.UUID{e.ID, e.ID}, Kinds: []AlertKind{AlertLineFull, AlertNoShows}})
	if err != nil {
		t.Fatal(err)
	}
	alert := func(kind AlertKind, room string) {
		t.Helper()
		if err := b.Alerts.Send(ctx, operator.Org, kind, room, "Z\u00fcrich: 50,000 people wait.\n.\nA dot."); err != nil {
			t.Fatal(err)
		}
		pass(t, b.Service)
	}
	alert(AlertLineFull, "sale")
	alert(AlertLineFull, "sale")   // repeated
	alert(AlertBeaconLate, "sale") // no recipients
	letters := s.letters()
	if len(letters) != 2 || len(in.of(alertEvent)) != 1 {
		t.Fatalf("%d mails, %d webhooks", len(letters), len(in.of(alertEvent)))
	}
	if err := verify(t, secret, in.of(alertEvent)[0]); err != nil {
		t.Error(err)
	}
	for _, m := range letters {
		if m.Header.Get("Subject") != "Proofline: sale: The line is full" ||
			!strings.Contains(m.Header.Get("From"), "<alerts@example.com>") ||
			!strings.HasPrefix(m.Header.Get("Content-Type"), "text/plain") ||
			!strings.HasSuffix(m.Header.Get("Message-ID"), "@example.com>") {
			t.Errorf("header %v", m.Header)
		}
		want := "Z\u00fcrich: 50,000 people wait.\r\n.\r\nA dot.\r\n\r\nRoom: https://example.com/r/sale\r\n\r\n-- \r\nRecipients of these mails are configured at https://example.com/console/alerts\r\n"
		if strings.TrimRight(m.Text, "\r\n") != strings.TrimRight(want, "\r\n") {
			t.Errorf("text %q", m.Text)
		}
	}
	if s.auth[0] != "PLAIN AHVzZXIAcGE6c3M=" {
		t.Errorf("auth %q", s.auth)
	}
	alert(AlertLineFull, "other") // another room
	alert(AlertNoShows, "sale")   // another kind
	if n := len(s.letters()); n != 6 {
		t.Errorf("%d mails after other alerts", n)
	}
	b.clock.advance(AlertQuiet - time.Second)
	alert(AlertLineFull, "sale")
	if n := len(s.letters()); n != 6 {
		t.Errorf("%d mails within the quarter of an hour", n)
	}
	b.clock.advance(time.Second)
	alert(AlertLineFull, "sale")
	if n := len(s.letters()); n != 8 {
		t.Errorf("%d mails after it", n)
	}
	if !b.hasLog(Delivered, uuid.Nil, 8) {
		t.Error("the log lacks mails")
	}
}

// TestAlertOnce checks that an alert is sent once by all nodes together, and as soon as there are
// recipients.
func TestAlertOnce(t *testing.T) {
	t.Parallel()
	s := newMailServer(t)
	b := newBench(t, func(o *Options) { o.Mail = s.smtp(t) })
	second := b.node(func(o *Options) { o.Mail = s.smtp(t) })
	ctx := t.Context()
	alert := func(h *Service, about string, want int) {
		t.Helper()
		if err := h.Alerts.SendOnce(ctx, operator.Org, AlertTokenEnds, about, "The token ends."); err != nil {
			t.Fatal(err)
		}
		pass(t, h)
		if n := len(s.letters()); n != want {
			t.Errorf("%s: %d mails, want %d", about, n, want)
		}
	}
	alert(b.Service, "token 1 soon", 0) // no recipients yet
	if err := b.Alerts.SetSettings(ctx, operator, AlertSettings{Emails: []string{"a@example.com"},
		Kinds: []AlertKind{AlertTokenEnds}}); err != nil {
		t.Fatal(err)
	}
	alert(b.Service, "token 1 soon", 1)
	alert(second, "token 1 soon", 1)
	alert(second, "token 1 last", 2)
	alert(b.Service, "token 2 soon", 3)
	b.clock.advance(logAge - time.Second)
	alert(b.Service, "token 1 soon", 3)
	if m := s.letters()[0]; m.Header.Get("Subject") != "Proofline: Token expires" || strings.Contains(m.Text, "Room:") {
		t.Errorf("mail %v %q", m.Header, m.Text)
	}
}

// hasLog reports whether the log has n deliveries in a state to a target.
func (b *bench) hasLog(state DeliveryState, target uuid.UUID, n int) bool {
	b.t.Helper()
	p, err := b.Deliveries.List(b.t.Context(), operator, DeliveryFilter{State: state, Endpoint: &target})
	if err != nil {
		b.t.Fatal(err)
	}
	return len(p.Deliveries) == n
}

// TestMailRetries checks that temporarily rejected mail is sent again under the same id, and
// permanently rejected mail is not.
func TestMailRetries(t *testing.T) {
	t.Parallel()
	s := newMailServer(t)
	full := true
	s.refuse = func(rcpt string) string {
		switch {
		case strings.Contains(rcpt, "nobody@"):
			return "550 5.1.1 no such user"
		case full:
			return "452 4.2.2 mailbox full"
		}
		return ""
	}
	b := newBench(t, func(o *Options) { o.Mail = s.smtp(t) })
	ctx := t.Context()
	if err := b.Alerts.SetSettings(ctx, operator, AlertSettings{Emails: []string{"a@example.com", "nobody@example.com"},
		Kinds: AlertKinds()}); err != nil {
		t.Fatal(err)
	}
	if err := b.Alerts.Test(ctx, operator); err != nil {
		t.Fatal(err)
	}
	pass(t, b.Service)
	if !b.hasLog(Waiting, uuid.Nil, 1) || !b.hasLog(Failed, uuid.Nil, 1) {
		t.Error("one should wait, and one be given up")
	}
	p, _ := b.Deliveries.List(ctx, operator, DeliveryFilter{State: Failed})
	if d := b.detail(p.Deliveries[0].ID); d.Recipient != "nobody@example.com" || d.Log[0].Status != 550 ||
		!strings.Contains(d.Log[0].Error, "no such user") {
		t.Errorf("%+v", d.Log)
	}
	full = false
	b.clock.advance(retries[0] + time.Second)
	pass(t, b.Service)
	if len(s.letters()) != 1 || !b.hasLog(Delivered, uuid.Nil, 1) {
		t.Errorf("%d mails", len(s.letters()))
	}
}

// TestMailServerIsAway checks that organizers do not read the address of a mail server that is away.
func TestMailServerIsAway(t *testing.T) {
	t.Parallel()
	s := newMailServer(t)
	_ = s.listener.Close()
	b := newBench(t, func(o *Options) { o.Mail = s.smtp(t) })
	err := b.Alerts.SetSettings(t.Context(), operator, AlertSettings{Emails: []string{"a@example.com"}, Kinds: AlertKinds()})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Alerts.Test(t.Context(), operator); err != nil {
		t.Fatal(err)
	}
	pass(t, b.Service)
	p, err := b.Deliveries.List(t.Context(), operator, DeliveryFilter{State: Waiting})
	if err != nil || len(p.Deliveries) != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	if d := b.detail(p.Deliveries[0].ID); len(d.Log) != 1 || d.Log[0].Error != "the connection failed" {
		t.Errorf("%+v", d.Log)
	}
}

// TestParseSMTP checks that TLS is required except on loopback, and that no text contains the
// password.
func TestParseSMTP(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, want string }{
		{"smtp://mail.example.com?from=a@example.com", "mail.example.com 587 starttls"},
		{"smtp://u:p@mail.example.com:25?from=a@example.com", "mail.example.com 25 starttls"},
		{"smtps://u:p@mail.example.com?from=a@example.com", "mail.example.com 465 tls"},
		{"smtps://127.0.0.1:1465?from=a@example.com", "127.0.0.1 1465 tls"},
		{"smtp://127.0.0.1:25?from=a@example.com", "127.0.0.1 25 clear"},
		{"smtp://[::1]:25?from=a@example.com", "::1 25 clear"},
		{"smtp://localhost:25?from=a@example.com", "localhost 25 clear"},
		{"smtp://localhost.example.com?from=a@example.com", "localhost.example.com 587 starttls"},
	} {
		s, err := ParseSMTP(c.url)
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		mode := "starttls"
		if s.IsSMTPS {
			mode = "tls"
		} else if s.IsInClear {
			mode = "clear"
		}
		if got := fmt.Sprintf("%s %d %s", s.Host, s.Port, mode); got != c.want {
			t.Errorf("%s: %s, want %s", c.url, got, c.want)
		}
		again, err := ParseSMTP(s.String())
		if err != nil || again.Host != s.Host || again.Port != s.Port || again.IsSMTPS != s.IsSMTPS ||
			again.User != s.User {
			t.Errorf("%s: again %+v, %v", s, again, err)
		}
	}
	for _, url := range []string{
		"", "mail.example.com", "http://mail.example.com?from=a@example.com", "smtp://?from=a@example.com",
		"smtp://u:sesame@host",
		"smtp://u:sesame@host?from=nobody", "smtp://u:sesame@host?from=a@example.com&tls=none",
		"smtp://u:sesame@host/x?from=a@example.com",
		"smtp://u:sesame@host:0?from=a@example.com", "smtp://u:sesame@host:99999?from=a@example.com",
		"smtp://u:sesame@ho st?from=a@example.com",
	} {
		if _, err := ParseSMTP(url); !errors.Is(err, ErrSMTP) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v", url, err)
		}
	}
	s, err := ParseSMTP("smtp://u:sesame@host?from=a@example.com")
	if err != nil || strings.Contains(s.String(), "sesame") {
		t.Errorf("%s, %v", s, err)
	}
}

// FuzzParseSMTP checks that every accepted URL can be parsed again from its String.
func FuzzParseSMTP(f *testing.F) {
	f.Add("smtp://u:p@mail.example.com:25?from=a@example.com")
	f.Add("smtps://[::1]?from=A <a@example.com>")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSMTP(text)
		if err != nil {
			return
		}
		if again, err := ParseSMTP(s.String()); err != nil || again.Host != s.Host || again.Port != s.Port ||
			again.IsInClear != s.IsInClear {
			t.Errorf("%q: %v, again %+v, %v", text, s, again, err)
		}
	})
}

// TestAsk checks that a mail server is asked without a sign-in or a mail, and found to be away.
func TestAsk(t *testing.T) {
	t.Parallel()
	s := newMailServer(t)
	if err := s.smtp(t).Ask(t.Context()); err != nil || len(s.letters()) > 0 || len(s.auth) > 0 {
		t.Errorf("%v, %d mails, %d sign-ins", err, len(s.letters()), len(s.auth))
	}
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0") // accepts and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	silent := *s.smtp(t)
	silent.Port = l.Addr().(*net.TCPAddr).Port
	soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := silent.Ask(soon); err == nil || err.Error() != "no response in time" {
		t.Errorf("a silent server: %v", err)
	}
	wrong := *s.smtp(t)
	wrong.IsSMTPS = true
	if err := wrong.Ask(t.Context()); err == nil || err.Error() != "the connection failed" {
		t.Errorf("a server without TLS, asked for it: %v", err)
	}
	busy, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var greeting sync.WaitGroup
	defer greeting.Wait()
	greeting.Go(func() {
		if c, err := busy.Accept(); err == nil {
			_, _ = c.Write([]byte("554 mx1.internal [10.1.2.3] takes no mail\r\n"))
			_ = c.Close()
		}
	})
	away := *s.smtp(t)
	away.Port = busy.Addr().(*net.TCPAddr).Port
	for _, detail := range []string{"10.1.2.3", "127.0.0.1"} { // it refuses mail, and is closed then
		err := away.Ask(t.Context())
		if err == nil || err.Error() != "the connection failed" || !strings.Contains(outbound.Detail(err).Error(), detail) {
			t.Errorf("%v, and for the operator: %v", err, outbound.Detail(err))
		}
		_ = busy.Close()
	}
}

// TestMailNeedsTLS checks that mail servers without TLS, or with an untrusted certificate, get no
// mail.
func TestMailNeedsTLS(t *testing.T) {
	t.Parallel()
	s := newMailServer(t)
	m := s.smtp(t)
	m.IsInClear = false
	if err := m.Send(t.Context(), "a@example.com", "x", "y"); err == nil || len(s.letters()) > 0 || len(s.auth) > 0 {
		t.Errorf("sent in clear: %v, auth %q", err, s.auth)
	}
	m.IsInClear = true
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := m.Send(ctx, "a@example.com", "Hello", "World"); err != nil || len(s.letters()) != 1 {
		t.Errorf("on the machine itself: %v", err)
	}
	if err := m.Send(ctx, "a@example.com\r\nRCPT TO:<b@example.com>", "Hello", "World"); err == nil {
		t.Error("an address of two lines is taken")
	}
	if err := m.Send(ctx, "a@example.com", "Hello\r\nBcc: b@example.com", "World"); err == nil &&
		s.letters()[len(s.letters())-1].Header.Get("Bcc") != "" {
		t.Error("a subject of two lines is a header")
	}
}

// TestAlertProblems checks that all problems are reported at once.
func TestAlertProblems(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct {
		settings AlertSettings
		want     string
	}{
		{AlertSettings{Emails: []string{"a@example.com"}}, "emails"}, // the server sends no mail
		{AlertSettings{Endpoints: []uuid.UUID{uuid.New()}, Kinds: []AlertKind{"boredom"}, NoShowPercent: 101},
			"endpoints kinds no_show_percent"},
		{AlertSettings{NoShowPercent: -1}, "no_show_percent"},
	} {
		if err := b.Alerts.SetSettings(t.Context(), operator, c.settings); fields(err) != c.want {
			t.Errorf("%+v: %v", c.settings, err)
		}
	}
	withMail := b.node(func(o *Options) { o.Mail = &SMTP{} })
	for _, email := range []string{"", "x", "A <a@example.com>", "a@example.com,b@example.com", "a@example.com\nb",
		"a@" + strings.Repeat("x", 260) + ".com"} {
		if err := withMail.Alerts.SetSettings(t.Context(), operator,
			AlertSettings{Emails: []string{email}}); fields(err) != "emails" {
			t.Errorf("%q: %v", email, err)
		}
	}
	if err := withMail.Alerts.SetSettings(t.Context(), operator,
		AlertSettings{Emails: many(21)}); !strings.HasPrefix(fields(err), "emails") {
		t.Errorf("too many: %v", err)
	}
	if err := b.Alerts.Test(t.Context(), operator); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("a test without recipients: %v", err)
	}
	s, err := b.Alerts.Settings(t.Context(), operator)
	if err != nil || len(s.Kinds) != len(AlertKinds()) || s.NoShowPercent != DefaultNoShows {
		t.Errorf("defaults %+v, %v", s, err)
	}
	for _, k := range AlertKinds() {
		if k.Title() == "" {
			t.Errorf("%s has no title", k)
		}
	}
	want := AlertSettings{Emails: []string{"a@example.com"}, Endpoints: []uuid.UUID{},
		Kinds: []AlertKind{AlertNoShows}, NoShowPercent: 55}
	if err := withMail.Alerts.SetSettings(t.Context(), operator, want); err != nil {
		t.Fatal(err)
	}
	if s, err := b.Alerts.Settings(t.Context(), operator); err != nil || fmt.Sprint(s) != fmt.Sprint(want) {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := b.listeners.readAll(t.Context()); err != nil || b.Alerts.NoShowPercent(operator.Org) != 55 ||
		b.Alerts.NoShowPercent(uuid.New()) != DefaultNoShows {
		t.Errorf("share %d, %v", b.Alerts.NoShowPercent(operator.Org), err)
	}
	if !b.Alerts.Wants(operator.Org, AlertNoShows) || b.Alerts.Wants(operator.Org, AlertLineFull) ||
		b.Alerts.Wants(uuid.New(), AlertNoShows) {
		t.Error("wants what it does not, or does not want what it does")
	}
}

// TestDatabaseTrouble checks that alerts are sent directly while the database is down, at
// intervals, and when it is back.
func TestDatabaseTrouble(t *testing.T) {
	t.Parallel()
	s := newMailServer(t)
	b := newBench(t, func(o *Options) { o.Mail = s.smtp(t) })
	in := newReceiver(t, nil)
	e, secret := b.endpoint(in.URL, RoomEnded)
	ctx := t.Context()
	if err := b.Alerts.SetSettings(ctx, operator, AlertSettings{Emails: []string{"a@example.com"}, Endpoints: []uuid.UUID{e.ID},
		Kinds: []AlertKind{AlertDatabase}}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.listeners.readAll(ctx); err != nil {
		t.Fatal(err)
	}
	away := errors.New("away")
	for i, c := range []struct {
		wait time.Duration
		err  error
		want int
	}{
		{0, away, 0}, {minOutage - time.Second, away, 0}, {time.Second, away, 1}, {time.Minute, away, 1},
		{AlertQuiet, away, 2}, {time.Second, nil, 3}, {time.Second, nil, 3}, {time.Second, away, 3},
		{time.Second, nil, 3},
	} {
		b.clock.advance(c.wait)
		b.follower.outage.note(ctx, c.err)
		b.sender.sending.Wait()
		pass(t, b.Service)
		if n, webhooks := len(s.letters()), len(in.of(alertEvent)); n != c.want || webhooks != c.want {
			t.Errorf("step %d: %d mails, %d webhooks, want %d", i, n, webhooks, c.want)
		}
	}
	for _, req := range in.requests() {
		if err := verify(t, secret, req); err != nil {
			t.Error(err)
		}
	}
	if m := s.letters(); !strings.Contains(m[0].Text, "has not responded") ||
		!strings.Contains(m[len(m)-1].Text, "responds again") {
		t.Errorf("mails %+v", m)
	}
}
