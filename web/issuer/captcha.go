package issuer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/web/limit"
)

// CaptchaService is a company whose widget sets a check that programs should fail, and whose siteverify tells whether
// a response of the widget is good. It gets the response and the operator's secret, and nothing else.
type CaptchaService struct {
	Name  string // in configurations
	Title string // for visitors

	Script    string // address of the widget's script
	Integrity string // of a script at an address of a version; empty: the service changes the script
	IsModule  bool
	Class     string // of the element that becomes the widget
	Field     string // of the form, which gets the response
	// Sources are the directives of the Content-Security-Policy that the widget needs.
	Sources string
	// Hosts are the hosts that a visitor's browser turns to.
	Hosts []string

	Verify      string // address of siteverify
	IsKeyHeader bool   // the secret is a header, and no field
	WantsKey    bool   // siteverify compares the site key, too
	HasAction   bool   // a response names the offer that it was made for
}

// captchaServices is the table of all services. Their documentation:
//   - https://developers.cloudflare.com/turnstile
//   - https://docs.hcaptcha.com
//   - https://developer.friendlycaptcha.com/docs/v2
var captchaServices = []CaptchaService{
	{
		Name: "turnstile", Title: "Cloudflare Turnstile",
		Script: "https://challenges.cloudflare.com/turnstile/v0/api.js",
		Class:  "cf-turnstile", Field: "cf-turnstile-response",
		Sources: "style-src 'self'; script-src https://challenges.cloudflare.com; " +
			"frame-src https://challenges.cloudflare.com",
		Hosts:  []string{"challenges.cloudflare.com"},
		Verify: "https://challenges.cloudflare.com/turnstile/v0/siteverify", HasAction: true,
	},
	{
		Name: "hcaptcha", Title: "hCaptcha",
		Script: "https://js.hcaptcha.com/1/api.js?recaptchacompat=off", Class: "h-captcha", Field: "h-captcha-response",
		Sources: "style-src 'self' https://hcaptcha.com https://*.hcaptcha.com; " +
			"script-src https://hcaptcha.com https://*.hcaptcha.com; frame-src https://hcaptcha.com https://*.hcaptcha.com; " +
			"connect-src https://hcaptcha.com https://*.hcaptcha.com",
		Hosts:  []string{"hcaptcha.com"},
		Verify: "https://api.hcaptcha.com/siteverify", WantsKey: true,
	},
	{
		Name: "friendly", Title: "Friendly Captcha",
		Script:    "https://cdn.jsdelivr.net/npm/@friendlycaptcha/sdk@1.0.2/site.min.js",
		Integrity: "sha384-PlTUwS206S5stm69A6ULL0xNfgrDI6zspceDmfFtJGdNblYUuExQauIm9leAc/Ck", IsModule: true,
		Class: "frc-captcha", Field: "frc-captcha-response",
		Sources: "style-src 'self'; script-src https://cdn.jsdelivr.net/npm/@friendlycaptcha/; " +
			"frame-src https://global.frcapi.com",
		Hosts:  []string{"cdn.jsdelivr.net", "global.frcapi.com"},
		Verify: "https://global.frcapi.com/api/v2/captcha/siteverify", IsKeyHeader: true, WantsKey: true,
	},
}

// CaptchaNames returns the names of all services, for messages.
func CaptchaNames() (names []string) {
	for _, s := range captchaServices {
		names = append(names, s.Name)
	}
	return names
}

// Captcha is an operator's account at a service.
type Captcha struct {
	CaptchaService
	SiteKey string // public
	Secret  string
}

// siteKeyForm matches the site keys of all services.
var siteKeyForm = regexp.MustCompile(`^[0-9A-Za-z_-]{1,100}$`)

// NewCaptcha returns the account of a site key at a service. verify is the address of siteverify; empty: the service's.
func NewCaptcha(service, siteKey, secret, verify string) (*Captcha, error) {
	i := slices.IndexFunc(captchaServices, func(s CaptchaService) bool { return s.Name == service })
	if i < 0 {
		return nil, fmt.Errorf("%q is no CAPTCHA service: want one of %s", service, strings.Join(CaptchaNames(), ", "))
	}
	if !siteKeyForm.MatchString(siteKey) {
		return nil, fmt.Errorf("%.100q is not a site key", siteKey)
	}
	if secret == "" || strings.ContainsAny(secret, "\r\n") {
		return nil, errors.New("the secret is not one line")
	}
	c := &Captcha{CaptchaService: captchaServices[i], SiteKey: siteKey, Secret: secret}
	if verify != "" {
		c.Verify = verify
	}
	return c, nil
}

const (
	captchaTimeout = 5 * time.Second // of one request to a service
	maxVerdict     = 64 << 10        // size of its response in bytes
	maxSolution    = 8 << 10         // size of a widget's response in bytes
	maxAction      = 32              // length of an action of Turnstile
)

// captchaClient follows no redirect, which would take the secret elsewhere.
var captchaClient = &http.Client{
	Timeout:       captchaTimeout,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// errSettings means that a service does not know the operator's keys, or the request.
var errSettings = errors.New("the service refuses the request: check the site key and the secret")

// action is the name under which a service counts the checks of an offer. A response made for one offer is not taken
// for another.
func (o *Offer) action() string {
	name := strings.ReplaceAll(o.Name, ".", "_")
	return name[:min(len(name), maxAction)]
}

// verify asks the service whether a response is good, and was made on a page of a host for an action. It returns
// [errCaptcha] if not, or [errCaptchaAway]. Every response is good once: the service sees to that.
func (c *Captcha) verify(ctx context.Context, response, host, action string) error {
	form := url.Values{"response": {response}}
	if c.WantsKey {
		form.Set("sitekey", c.SiteKey)
	}
	if !c.IsKeyHeader {
		form.Set("secret", c.Secret)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Verify, strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("%w: %w", errCaptchaAway, err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	if c.IsKeyHeader {
		r.Header.Set("X-API-Key", c.Secret)
	}
	got, err := captchaClient.Do(r)
	if err != nil {
		return fmt.Errorf("%w: %w", errCaptchaAway, err)
	}
	defer func() { _ = got.Body.Close() }() // only read from
	text, err := io.ReadAll(io.LimitReader(got.Body, maxVerdict))
	if err != nil {
		return fmt.Errorf("%w: %w", errCaptchaAway, err)
	}
	return c.judge(got.StatusCode, text, host, action)
}

// Ask returns an error if siteverify does not answer. It shows no response of a widget, so any answer will do.
func (c *Captcha) Ask(ctx context.Context) error {
	return reach(ctx, captchaClient, c.Verify, http.StatusInternalServerError)
}

// verdict is what siteverify says, in the spellings of all services.
type verdict struct {
	Success  bool     `json:"success"`
	Hostname string   `json:"hostname"`
	Action   string   `json:"action"`
	Codes    []string `json:"error-codes"`
	Error    struct {
		Code string `json:"error_code"`
	} `json:"error"`
	Data struct {
		Challenge struct {
			Origin string `json:"origin"`
		} `json:"challenge"`
	} `json:"data"`
}

// judge reads the response of siteverify.
func (c *Captcha) judge(status int, text []byte, host, action string) error {
	var v verdict
	if status >= 500 || status == http.StatusTooManyRequests || json.Unmarshal(text, &v) != nil {
		return fmt.Errorf("%w: status %d", errCaptchaAway, status)
	}
	if !v.Success {
		codes := v.Codes
		if v.Error.Code != "" {
			codes = append(codes, v.Error.Code)
		}
		// Codes such as invalid-input-response and timeout-or-duplicate are about the visitor's response, others about
		// the keys or the request.
		if len(codes) == 0 || slices.ContainsFunc(codes, func(code string) bool {
			return strings.Contains(code, "response") || strings.Contains(code, "duplicate")
		}) {
			return fmt.Errorf("%w: %.200q", errCaptcha, codes)
		}
		return fmt.Errorf("%w: %w: %.200q", errCaptchaAway, errSettings, codes)
	}
	at := v.Hostname
	if at == "" {
		at = hostOf(v.Data.Challenge.Origin)
	}
	if !strings.EqualFold(at, host) {
		return fmt.Errorf("%w: it was solved at %.100q, not at %q", errCaptcha, at, host)
	}
	if c.HasAction && v.Action != action {
		return fmt.Errorf("%w: it was solved for %.100q, not for %q", errCaptcha, v.Action, action)
	}
	return nil
}

// hostOf returns the host of an origin, which may lack the scheme.
func hostOf(origin string) string {
	if !strings.Contains(origin, "://") {
		origin = "https://" + origin
	}
	u, err := url.Parse(origin)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// widget is the page with the widget. It alone loads scripts of another company.
func (s *Site) widget(o *Offer) *view {
	return &view{Page: "widget", Captcha: s.Captcha, Action: o.action()}
}

// captcha shows the widget, after the visitor has read who gets what.
func (s *Site) captcha(w http.ResponseWriter, r *http.Request, o *Offer) error {
	if o.Proof != ByCaptcha {
		return errForm
	}
	if _, err := s.form(asking, r, o); err != nil {
		return err
	}
	v := s.widget(o)
	v.Offer, v.Flow = o, r.PostFormValue("flow")
	s.show(w, r, http.StatusOK, v)
	return nil
}

// solved verifies the response of the widget. It has no account, so each is one: a network gets as many as its budget
// of [limit.Joins].
func (s *Site) solved(r *http.Request, o *Offer) (account string, err error) {
	response := r.PostFormValue(s.Captcha.Field)
	if response == "" || len(response) > maxSolution {
		return "", errCaptcha
	}
	addr := s.Clients.Of(r)
	if err := s.Limits.Take(addr, limit.Joins, 1); err != nil {
		return "", err
	}
	if err := s.Limits.Take(addr, limit.Passes, 1); err != nil {
		s.Limits.GiveBack(addr, limit.Joins, 1)
		return "", err
	}
	err = s.Captcha.verify(r.Context(), response, s.URL.Hostname(), o.action())
	if err != nil {
		s.Limits.GiveBack(addr, limit.Joins, 1)
	}
	if !errors.Is(err, errCaptcha) {
		s.Limits.GiveBack(addr, limit.Passes, 1)
	}
	switch {
	case errors.Is(err, errCaptchaAway):
		s.Log.Error("cannot verify a CAPTCHA", "service", s.Captcha.Name, "offer", o.Name, "err", err)
	case err != nil:
		s.Log.Info("a CAPTCHA was not solved", "service", s.Captcha.Name, "offer", o.Name, "err", err)
	}
	return "captcha" + unit + s.Captcha.Name + unit + response, err
}

// widgetPolicy returns the Content-Security-Policy of the page with the widget. Its scripts share the origin of all
// pages: they can send a form nowhere but to the next page and to the room, as a confirmed visitor does.
func (s *Site) widgetPolicy(o *Offer) string {
	next := origin(s.URL) + s.URL.Path + "/" + o.Name + "/prove"
	return policy(s.Captcha.Sources, next+" "+origin(o.RoomURL)+o.RoomURL.EscapedPath())
}
