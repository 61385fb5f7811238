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

// intrusion is a way past the line that there must not be.
type intrusion struct {
	what, method, path string
	header             []string
}

// forgedPasses is how many of the intrusions show a pass, in the place of one.
const forgedPasses = 4

// intrusions are what somebody tries who has seen everything of a shopper's
// visit, which is over.
func (d *demo) intrusions(v *visitor) ([]intrusion, error) {
	another, err := forged(v.pass.Pass)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(v.pass.Pass, ".")
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + parts[1] + "."
	name, _, _ := strings.Cut(v.cookie, "=")
	const get, post, pass = http.MethodGet, http.MethodPost, "/tickets?proofline_pass="
	return []intrusion{
		{"no pass", get, "/tickets", nil},
		{"a purchase without a pass", post, "/tickets/buy", nil},
		{"a script without a pass", get, "/tickets/left", []string{"Sec-Fetch-Mode: cors"}},
		{"an escaped address", get, "/%74ickets", nil},
		{"an address in capitals", get, "/TICKETS", nil},
		{"an address with two slashes", get, "//tickets", nil},
		{"an address with dots", get, "/orders/../tickets", nil},
		{"an address with a parameter", get, "/tickets;a=b", nil},
		{"another method in a header", post, "/tickets/buy", []string{"X-HTTP-Method-Override: OPTIONS"}},
		{"the ticket of somebody who is in", get, "/tickets", []string{"X-Proofline-Ticket: " + v.ticket, "X-Proofline-Room: sale"}},
		{"a pass that was used", get, pass + v.pass.Pass, nil},
		{"a pass of another key", get, pass + another, nil},
		{"a pass without a signature", get, pass + unsigned, nil},
		{"half a pass", get, pass + v.pass.Pass[:len(v.pass.Pass)/2], nil},
		{"a pass in a header", get, "/tickets", []string{"Authorization: Bearer " + v.pass.Pass}},
		{"the cookie of a visit that is over", get, "/tickets", []string{"Cookie: " + v.cookie}},
		{"a cookie made up", get, "/tickets", []string{"Cookie: " + name + "=AAAA"}},
		{"a cookie that was changed", get, "/tickets", []string{"Cookie: " + v.cookie[:len(v.cookie)-4] + "AAAA"}},
	}, nil
}

// forged returns a pass that says the same, signed by a key of somebody else.
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

// intrude tries every way past the line. None leads past it.
func (d *demo) intrude(ctx context.Context) error {
	v := d.first(shopper)
	if v.cookie == "" {
		return nil // which was told
	}
	all, err := d.intrusions(v)
	if err != nil {
		return err
	}
	for _, i := range all {
		a, err := d.front.ask(ctx, i.method, i.path, i.header...)
		if err != nil {
			return fmt.Errorf("try %s: %w", i.what, err)
		}
		d.expect(d.led(a), "%s is answered with %d, to %q", i.what, a.status, a.to)
		d.seen.refuse()
	}
	d.Narrator.Say("Somebody tries %d ways past the line: without a pass, with a used or a forged one, by other", len(all)+1)
	d.Narrator.Say("spellings, with a copied cookie, by a link with a forged way back. The shop hears of none.")
	return nil
}

// mislead has a visitor, who has claimed a pass a moment ago, come by a link that
// somebody else made, to a page of the shop that needs no pass: it would be in
// that page's address.
func (d *demo) mislead(ctx context.Context, v *visitor) error {
	forged := api.WayBack{To: d.front.url + "/orders/1", Sig: v.back.Sig}
	p, err := d.visitor.ClaimTo(ctx, v.ticket, v.secret, forged)
	if err != nil {
		return fmt.Errorf("try a forged way back: %w", err)
	}
	first := d.front.url + "/?proofline_pass=" // of the room's targets
	d.expect(strings.HasPrefix(p.Location, first), "a forged way back leads to %q", p.Location)
	d.seen.refuse()
	return nil
}
