package issuer

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/proofline/proofline/cmd/proofline/internal/captcha"
	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/issuerdir"
	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	"github.com/proofline/proofline/console/retention"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/fairness/credential/issuer"
	web "github.com/proofline/proofline/web/issuer"
)

// config is the configuration file. web/issuer/README.md explains it.
type config struct {
	URL     string         `json:"url"`
	Name    string         `json:"name"`
	OIDC    *oidcConfig    `json:"oidc"`
	Captcha *captchaConfig `json:"captcha"`
	Offers  []*offerConfig `json:"offers"`

	url *url.URL
}

type oidcConfig struct {
	Issuer       string `json:"issuer"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"` // file
	Name         string `json:"name"`
}

type captchaConfig struct {
	Service string `json:"service"`
	SiteKey string `json:"site_key"`
	Secret  string `json:"secret"` // file
	Verify  string `json:"verify"` // address of siteverify; default: the service's
}

type offerConfig struct {
	Name     string          `json:"name"`
	Method   string          `json:"method"` // default: the name
	Kind     credential.Kind `json:"kind"`
	Room     string          `json:"room"`  // address of the room's page
	Title    string          `json:"title"` // of the room, for visitors; default: the host alone
	Entry    string          `json:"entry"` // SHA-256 of the room entry
	Lanes    []string        `json:"lanes"` // default: general
	Limit    uint32          `json:"limit"`
	Proof    web.Proof       `json:"proof"`
	List     string          `json:"list"`
	Domains  []string        `json:"domains"`
	Passkeys bool            `json:"passkeys"`
	Until    time.Time       `json:"until"` // nothing is issued from then on; zero: no end

	room *url.URL
}

func addConfig(flags *pflag.FlagSet, path *string) {
	flags.StringVar(path, "config", "issuer.yaml", "`FILE` with the issuer's name, address and offers")
}

// readConfig reads and checks a configuration file.
func readConfig(path string) (*config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, cli.Usage(err, "name the configuration with --config")
	}
	c := &config{}
	if err := yaml.UnmarshalStrict(text, c); err != nil {
		return nil, invalid(path, err)
	}
	if c.url, err = parseURL(c.URL); err != nil || c.url.Path != "" {
		return nil, invalid(path, fmt.Errorf("url: %q is not an https URL without a path", c.URL))
	}
	if c.Name == "" {
		return nil, invalid(path, errors.New("name is missing"))
	}
	if len(c.Offers) == 0 {
		return nil, invalid(path, errors.New("offers are missing"))
	}
	for i, o := range c.Offers {
		if err := o.check(); err != nil {
			return nil, invalid(path, fmt.Errorf("offers[%d]: %w", i, err))
		}
	}
	if c.Captcha != nil && c.Captcha.Secret == "" {
		return nil, invalid(path, errors.New("captcha: secret is missing: the name of a file"))
	}
	if c.OIDC != nil {
		if _, err := parseURL(c.OIDC.Issuer); err != nil || c.OIDC.ClientID == "" || c.OIDC.ClientSecret == "" {
			return nil, invalid(path, errors.New("oidc: issuer, client_id and client_secret are required"))
		}
	}
	return c, nil
}

func invalid(path string, err error) error {
	return cli.Usage(fmt.Errorf("%s: %w", path, err), "web/issuer/README.md explains the configuration")
}

// parseURL parses an https URL, or an http one of this machine.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	a, err := netip.ParseAddr(u.Hostname())
	isLocal := u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && a.IsLoopback())
	if u.Scheme != "https" && !isLocal || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not an https URL", text)
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, nil
}

func (o *offerConfig) check() (err error) {
	if o.Method == "" {
		o.Method = o.Name
	}
	if len(o.Lanes) == 0 {
		o.Lanes = []string{"general"}
	}
	if o.room, err = parseURL(o.Room); err != nil {
		return fmt.Errorf("room: %w", err)
	}
	for _, name := range append([]string{o.Name, o.Method}, o.Lanes...) {
		if !isName(name) {
			return fmt.Errorf("%q is not a name: want 1 to 32 of a-z, 0-9 and -", name)
		}
	}
	switch {
	case o.Kind != credential.Signed && o.Kind != credential.Blind:
		return fmt.Errorf("kind: %q is neither signed nor blind", o.Kind)
	case o.Kind == credential.Blind && len(o.Lanes) > 1:
		return errors.New("lanes: a blind key is for one lane, so offer each lane by itself")
	case !slices.Contains([]web.Proof{web.ByList, web.ByMail, web.ByOIDC, web.ByPuzzle, web.ByCaptcha}, o.Proof):
		return fmt.Errorf("proof: %q is neither list, mail, oidc, puzzle nor captcha", o.Proof)
	case o.Proof == web.ByList && o.List == "":
		return errors.New("list is missing: the name of a list of codes or members")
	case o.Proof == web.ByList && len(o.Domains) > 0:
		return errors.New("domains are for the proofs mail and oidc")
	}
	for i, d := range o.Domains {
		o.Domains[i] = strings.ToLower(d)
	}
	if b, err := hex.DecodeString(o.Entry); err != nil || len(b) != 32 && o.Entry != "" {
		return fmt.Errorf("entry: %q is not a SHA-256 in hex", o.Entry)
	}
	return nil
}

// offer returns the offer with its keys.
func (o *offerConfig) offer(dir issuerdir.Dir) (*issuer.Offer, error) {
	offer := &issuer.Offer{Name: o.Name, Method: o.Method, Lanes: o.Lanes, Limit: o.Limit, Purpose: o.Proof.Purpose()}
	entry, _ := hex.DecodeString(o.Entry) // checked
	copy(offer.Room[:], entry)
	var err error
	if o.Kind == credential.Blind {
		offer.Key, err = dir.BlindKey(o.Name)
	}
	return offer, err
}

// offers returns the offers with their lists, for the site.
func (c *config) offers(dir issuerdir.Dir, i *issuer.Issuer, keep retention.Keep) (offers []*web.Offer, err error) {
	for _, o := range c.Offers {
		if o.isForgotten(keep, time.Now()) {
			continue
		}
		if o.Entry == "" {
			return nil, cli.Usage(fmt.Errorf("offer %s: the room's entry is missing", o.Name),
				"create the room with the lines of proofline issuer methods, then run proofline issuer room URL")
		}
		offer := &web.Offer{RoomURL: o.room, Proof: o.Proof, Domains: o.Domains, Passkeys: o.Passkeys, Title: o.Title,
			Until: o.Until}
		if !o.Until.IsZero() && keep != retention.Forever {
			offer.Counted = o.Until.Add(time.Duration(keep))
		}
		if offer.Offer, err = o.offer(dir); err != nil {
			return nil, err
		}
		if o.List != "" {
			offer.List, err = dir.List(i, o.List)
			if errors.Is(err, fs.ErrNotExist) {
				return nil, cli.Failed(fmt.Errorf("offer %s: there is no list %s", o.Name, o.List),
					"make it with proofline issuer codes or proofline issuer members")
			}
			if err != nil {
				return nil, err
			}
		}
		offers = append(offers, offer)
	}
	return offers, nil
}

// provider returns the provider of sign-ins; nil without one.
func (c *config) provider() (*web.Provider, error) {
	if c.OIDC == nil {
		return nil, nil
	}
	text, err := secret.Read(c.OIDC.ClientSecret)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("oidc: client_secret: %w", err), "name a file that only you can read")
	}
	name := c.OIDC.Name
	if u, err := url.Parse(c.OIDC.Issuer); name == "" && err == nil {
		name = u.Host
	}
	return &web.Provider{Issuer: c.OIDC.Issuer, ClientID: c.OIDC.ClientID, ClientSecret: text, Name: name}, nil
}

// captcha returns the account at a CAPTCHA service; nil without one.
func (c *config) captcha() (*web.Captcha, error) {
	if c.Captcha == nil {
		return nil, nil
	}
	opened, err := captcha.Open(c.Captcha.Service, c.Captcha.SiteKey, c.Captcha.Secret, c.Captcha.Verify)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("captcha: %w", err), "web/issuer/README.md explains the configuration")
	}
	return opened, nil
}
