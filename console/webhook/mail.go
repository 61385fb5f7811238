package webhook

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"net/netip"
	"net/smtp"
	"net/url"
	"strconv"

	gomail "github.com/wneessen/go-mail"

	"github.com/proofline/proofline/console/webhook/pgwebhook"
	"github.com/proofline/proofline/internal/outbound"
	"github.com/proofline/proofline/internal/traces"
)

// ErrSMTP is returned for an invalid mail server URL.
var ErrSMTP = errors.New("invalid mail server URL: want smtp://user:password@host:587?from=alerts@example.com, " +
	"or smtps:// for TLS from the start")

// SMTP is a mail server. It is safe for concurrent use.
type SMTP struct {
	Host      string
	Port      int
	User      string // "": none
	Password  string
	From      netmail.Address
	IsSMTPS   bool           // TLS from the start; otherwise STARTTLS
	IsInClear bool           // no TLS, allowed only on a loopback address
	Tracer    *traces.Tracer // nil: mails are not traced
}

// ParseSMTP parses smtp(s)://user:password@host:port?from=address. The port defaults to 587, or 465
// for smtps. TLS is required, and the certificate checked, unless an smtp:// host is a loopback
// address. Errors do not contain the password.
func ParseSMTP(text string) (*SMTP, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Hostname() == "" || u.Path != "" &&
		u.Path != "/" || u.Fragment != "" {
		return nil, ErrSMTP
	}
	s := &SMTP{Host: u.Hostname(), Port: 587, IsSMTPS: u.Scheme == "smtps"}
	if s.IsSMTPS {
		s.Port = 465
	}
	if u.Port() != "" {
		if s.Port, err = strconv.Atoi(u.Port()); err != nil || s.Port < 1 || s.Port > 65535 {
			return nil, fmt.Errorf("%w: port %s", ErrSMTP, u.Port())
		}
	}
	for name, values := range u.Query() {
		if name != "from" || len(values) != 1 {
			return nil, fmt.Errorf("%w: unknown option %q", ErrSMTP, name)
		}
	}
	from, err := netmail.ParseAddress(u.Query().Get("from"))
	if err != nil {
		return nil, fmt.Errorf("%w: from is required, the sender's address", ErrSMTP)
	}
	s.From, s.User = *from, u.User.Username()
	s.Password, _ = u.User.Password()
	s.IsInClear = !s.IsSMTPS && isLoopback(s.Host)
	return s, nil
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// String returns the URL without the password.
func (s *SMTP) String() string {
	u := url.URL{Scheme: "smtp", Host: net.JoinHostPort(s.Host, strconv.Itoa(s.Port)),
		RawQuery: url.Values{"from": {s.From.Address}}.Encode()}
	if s.IsSMTPS {
		u.Scheme = "smtps"
	}
	if s.User != "" {
		u.User = url.User(s.User)
	}
	return u.String()
}

// Send sends a plain text mail immediately, in a single attempt.
func (s *SMTP) Send(ctx context.Context, to, subject, text string) error {
	return s.send(ctx, to, subject, text, "")
}

// send sends a mail with a Message-ID; "": a new one.
func (s *SMTP) send(ctx context.Context, to, subject, text, id string) error {
	m := gomail.NewMsg()
	if err := m.From(s.From.String()); err != nil {
		return fmt.Errorf("send mail: %w", err)
	}
	if err := m.To(to); err != nil {
		return fmt.Errorf("send mail: %w", err)
	}
	m.Subject(subject)
	m.SetDate()
	m.SetMessageID()
	if id != "" {
		m.SetMessageIDWithValue(id)
	}
	m.SetBodyString(gomail.TypeTextPlain, text)
	c, err := gomail.NewClient(s.Host, s.options()...)
	if err != nil {
		return fmt.Errorf("send mail: %w", err)
	}
	ctx, span := s.Tracer.Call(ctx, "send a mail")
	err = c.DialAndSendWithContext(ctx, m)
	traces.End(span, err == nil)
	if err != nil {
		return fmt.Errorf("send mail: %w", err)
	}
	return nil
}

// Ask returns an error if the mail server does not greet. It neither signs in nor sends anything.
func (s *SMTP) Ask(ctx context.Context) error {
	if err := s.greet(ctx); err != nil {
		return outbound.Hide(ctx, err)
	}
	return nil
}

func (s *SMTP) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	dial := (&net.Dialer{}).DialContext
	if s.IsSMTPS {
		dial = (&tls.Dialer{}).DialContext
	}
	conn, err := dial(ctx, "tcp", net.JoinHostPort(s.Host, strconv.Itoa(s.Port)))
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	c, err := smtp.NewClient(conn, s.Host)
	if err != nil {
		_ = conn.Close() // it has failed already
		return err
	}
	_ = c.Quit() // it has greeted, and more is not asked
	return nil
}

func (s *SMTP) options() []gomail.Option {
	options := []gomail.Option{gomail.WithPort(s.Port), gomail.WithTimeout(attemptTimeout)}
	switch {
	case s.IsInClear:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	case s.IsSMTPS:
		options = append(options, gomail.WithSSL())
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if s.User != "" {
		auth := gomail.SMTPAuthAutoDiscover
		if s.IsInClear {
			auth = gomail.SMTPAuthPlainNoEnc
		}
		options = append(options, gomail.WithSMTPAuth(auth), gomail.WithUsername(s.User),
			gomail.WithPassword(s.Password))
	}
	return options
}

// mail sends an alert by mail.
func (s *sender) mail(ctx context.Context, d *pgwebhook.Delivery) result {
	if s.smtp == nil {
		return result{failure: "this server sends no mail", isFinal: true}
	}
	var p struct{ Data alerted }
	if err := json.Unmarshal([]byte(d.Payload), &p); err != nil {
		return result{failure: err.Error(), isFinal: true}
	}
	subject, text := letter(&p.Data, s.publicURL)
	err := s.smtp.send(ctx, d.Recipient, subject, text, d.ID.String()+"@"+domain(s.smtp.From.Address))
	if err == nil {
		return result{status: 250}
	}
	r := result{failure: outbound.Failure(ctx, err)}
	e, ok := errors.AsType[*gomail.SendError](err)
	switch {
	case !ok:
		s.log.Warn("cannot send a mail", "delivery", d.ID, "err", err)
	case e.ErrorCode() == 0: // the connection failed; the error has addresses of the network and of the recipient
		s.log.Warn("cannot send a mail", "delivery", d.ID, "err", e.Reason)
	default:
		r.status = e.ErrorCode()
		r.isFinal = r.status >= 500 && !e.IsTemp()
		r.failure = printable(e.Error())
	}
	return r
}

// letter returns the mail of an alert.
func letter(a *alerted, publicURL string) (subject, text string) {
	subject, text = "Proofline: "+a.Title, a.Text+"\n"
	if a.Room != "" {
		subject = "Proofline: " + a.Room + ": " + a.Title
		text += "\nRoom: " + a.URL + "\n"
		if a.IsRehearsal {
			text += "This is a rehearsal with synthetic visitors.\n"
		}
	}
	return subject, text + "\n-- \nRecipients of these mails are configured at " + publicURL + "/console/alerts\n"
}

// domain returns the part after the @ of an address.
func domain(address string) string {
	for i := len(address) - 1; i >= 0; i-- {
		if address[i] == '@' {
			return address[i+1:]
		}
	}
	return address
}
