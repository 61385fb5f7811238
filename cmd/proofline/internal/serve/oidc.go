package serve

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/pflag"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/room/setting"
	web "github.com/proofline/proofline/web/issuer"
)

// oidcFlags are the flags for sign-in with OpenID Connect.
type oidcFlags struct {
	issuer, clientID, secretFile, name string
	domains                            []string
}

func (f *oidcFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.issuer, "oidc-issuer", "", "`URL` of an OpenID Connect issuer that organizers sign in with")
	flags.StringVar(&f.clientID, "oidc-client-id", "", "`ID` of this server at the issuer")
	flags.StringVar(&f.secretFile, "oidc-client-secret", "", "`FILE` of the client secret")
	flags.StringVar(&f.name, "oidc-name", "", "`NAME` of the issuer on the sign-in page (default its host)")
	flags.StringSliceVar(&f.domains, "oidc-domains", nil,
		"`DOMAIN=ROLE` for people who get an account on their first sign-in, by e-mail address, such as example.com=viewer")
	cli.InEnv(flags, "oidc-issuer", "oidc-client-id", "oidc-client-secret", "oidc-name", "oidc-domains")
}

// config parses the flags; it returns nil if none is set.
func (f *oidcFlags) config() (*account.OIDCConfig, error) {
	if f.issuer == "" {
		if f.clientID != "" || f.secretFile != "" || f.name != "" || len(f.domains) > 0 {
			return nil, cli.Usage(errors.New("--oidc-issuer is missing"),
				"give the URL of the issuer, or none of the --oidc flags")
		}
		return nil, nil
	}
	if _, err := parseProvider("--oidc-issuer", f.issuer); err != nil {
		return nil, err
	}
	if f.clientID == "" || f.secretFile == "" {
		return nil, cli.Usage(errors.New("--oidc-issuer needs --oidc-client-id and --oidc-client-secret"),
			"register this server at the issuer, with the redirect URL PUBLIC-URL"+account.OIDCPath)
	}
	var err error
	c := &account.OIDCConfig{Issuer: f.issuer, ClientID: f.clientID, Name: f.name, Domains: map[string]account.Role{}}
	for _, text := range f.domains {
		domain, role, _ := strings.Cut(text, "=")
		if c.Domains[strings.ToLower(domain)], err = account.ParseRole(role); err != nil ||
			!strings.Contains(domain, ".") {
			return nil, cli.Usage(fmt.Errorf("--oidc-domains: %q is not DOMAIN=ROLE", text),
				"give values such as example.com=viewer; roles are owner, operator and viewer")
		}
	}
	text, err := secret.Read(f.secretFile)
	if err != nil {
		return nil, cli.Failed(fmt.Errorf("--oidc-client-secret: %w", err), "the file must contain only the secret")
	}
	c.ClientSecret = strings.TrimSpace(text)
	return c, nil
}

// parseProvider parses the URL of an OpenID Connect provider.
func parseProvider(flag, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	isLocal := err == nil && u.Scheme == "http" && (u.Hostname() == "127.0.0.1" || u.Hostname() == "localhost")
	if err != nil || u.Scheme != "https" && !isLocal || u.Host == "" || u.User != nil {
		return nil, cli.Usage(errors.New(flag+": not an https URL"),
			"give the issuer's URL, such as https://login.example.com")
	}
	return u, nil
}

// visitorOIDCFlags are the flags for the OpenID Connect provider of the own issuer.
type visitorOIDCFlags struct{ issuer, clientID, secretFile string }

func (f *visitorOIDCFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.issuer, "issuer-oidc", "",
		"`URL` of an OpenID Connect provider at which visitors sign in, for methods with the key "+setting.OwnOIDCKey)
	flags.StringVar(&f.clientID, "issuer-oidc-client", "", "`ID` of this server at that provider")
	flags.StringVar(&f.secretFile, "issuer-oidc-secret", "", "`FILE` of the client secret")
	cli.InEnv(flags, "issuer-oidc", "issuer-oidc-client", "issuer-oidc-secret")
}

// config parses the flags; it returns nil if none is set.
func (f *visitorOIDCFlags) config() (*web.Provider, error) {
	if *f == (visitorOIDCFlags{}) {
		return nil, nil
	}
	if f.issuer == "" || f.clientID == "" || f.secretFile == "" {
		return nil, cli.Usage(errors.New("--issuer-oidc, --issuer-oidc-client and --issuer-oidc-secret belong together"),
			"register this server at the provider, with the redirect URL PUBLIC-URL"+server.IssuerPath+web.CallbackPath)
	}
	u, err := parseProvider("--issuer-oidc", f.issuer)
	if err != nil {
		return nil, err
	}
	text, err := secret.Read(f.secretFile)
	if err != nil {
		return nil, cli.Failed(fmt.Errorf("--issuer-oidc-secret: %w", err), "the file must contain only the secret")
	}
	return &web.Provider{Issuer: f.issuer, ClientID: f.clientID, ClientSecret: strings.TrimSpace(text),
		Name: u.Host}, nil
}
