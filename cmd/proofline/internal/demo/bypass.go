package demo

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
)

// bypass is a request that tries to get past the line.
type bypass struct {
	what, method, path string
	header             []string
}

// badPasses is the number of bypasses with a pass in the proofline_pass parameter.
const badPasses = 4

// bypasses returns the requests of an attacker who has seen all traffic of a
// shopper's ended session.
func (c *crowd) bypasses(v *person) ([]bypass, error) {
	another, err := forged(v.pass.Pass)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(v.pass.Pass, ".")
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + parts[1] + "."
	name, _, _ := strings.Cut(v.cookie, "=")
	const get, post, pass = http.MethodGet, http.MethodPost, "/tickets?proofline_pass="
	return []bypass{
		{"no pass", get, "/tickets", nil},
		{"a purchase without a pass", post, "/tickets/buy", nil},
		{"a script without a pass", get, "/tickets/left", []string{"Sec-Fetch-Mode: cors"}},
		{"an escaped address", get, "/%74ickets", nil},
		{"an address in capitals", get, "/TICKETS", nil},
		{"an address with two slashes", get, "//tickets", nil},
		{"an address with dots", get, "/orders/../tickets", nil},
		{"an address with a parameter", get, "/tickets;a=b", nil},
		{"another method in a header", post, "/tickets/buy", []string{"X-HTTP-Method-Override: OPTIONS"}},
		{"an admitted visitor's ticket in a header", get, "/tickets", []string{
			"X-Proofline-Ticket: " + v.ticket, "X-Proofline-Room: sale",
		}},
		{"a pass that was used", get, pass + v.pass.Pass, nil},
		{"a pass of another key", get, pass + another, nil},
		{"a pass without a signature", get, pass + unsigned, nil},
		{"half a pass", get, pass + v.pass.Pass[:len(v.pass.Pass)/2], nil},
		{"a pass in a header", get, "/tickets", []string{"Authorization: Bearer " + v.pass.Pass}},
		{"the cookie of an ended session", get, "/tickets", []string{"Cookie: " + v.cookie}},
		{"an invented cookie", get, "/tickets", []string{"Cookie: " + name + "=AAAA"}},
		{"an altered cookie", get, "/tickets", []string{"Cookie: " + v.cookie[:len(v.cookie)-4] + "AAAA"}},
	}, nil
}

// forged returns a pass with the same claims, signed with another key.
func forged(pass string) (string, error) {
	token, _, err := jwt.NewParser().ParseUnverified(pass, jwt.MapClaims{})
	if err != nil {
		return "", fmt.Errorf("read a pass: %w", err)
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return "", err
	}
	text, err := token.SignedString(key)
	if err != nil {
		return "", fmt.Errorf("forge a pass: %w", err)
	}
	return text, nil
}

// tryBypasses sends all requests that try to get past the line, and checks that each
// is sent to the room.
func (c *crowd) tryBypasses(ctx context.Context) error {
	v := c.with(shopper)[0]
	if v.cookie == "" {
		return nil // buy has reported it
	}
	all, err := c.bypasses(v)
	if err != nil {
		return err
	}
	for _, i := range all {
		a, err := c.front.ask(ctx, i.method, i.path, i.header...)
		if err != nil {
			return fmt.Errorf("try %s: %w", i.what, err)
		}
		c.checks.expect(c.front.isQueued(a), "%s is answered with %d, to %q", i.what, a.status, a.to)
		c.checks.refuse()
	}
	c.checks.Say("An attacker tries %d ways past the line: no pass, used and forged passes, other spellings of the",
		len(all)+1)
	c.checks.Say("address, a copied cookie, a link with a forged return URL. None of them reaches the shop.")
	return nil
}

// tryForgedReturn repeats a visitor's claim with a return URL that no connector signed. The URL is
// that of a page that needs no pass, where the pass would remain in the address bar.
func (c *crowd) tryForgedReturn(ctx context.Context, v *person) error {
	forged := api.ReturnURL{To: c.front.url + "/orders/1", Sig: v.back.Sig}
	p, err := c.room.visitor.ClaimTo(ctx, v.ticket, v.secret, forged)
	if err != nil {
		return fmt.Errorf("try a forged return URL: %w", err)
	}
	first := c.front.url + "/?proofline_pass=" // the room's first target
	c.checks.expect(strings.HasPrefix(p.Location, first), "a claim with a forged return URL is sent to %q", p.Location)
	c.checks.refuse()
	return nil
}
