// Package captcha opens an operator's account at a CAPTCHA service, for both programs that run an issuer.
package captcha

import (
	"fmt"
	"net/url"

	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	web "github.com/proofline/proofline/web/issuer"
)

// Open returns the account of a site key at a service, with the secret in a file. verify is the address of siteverify,
// for a proxy of the operator's; empty: the service's.
func Open(service, siteKey, secretFile, verify string) (*web.Captcha, error) {
	if verify != "" {
		u, err := url.Parse(verify)
		isLocal := err == nil && u.Scheme == "http" && (u.Hostname() == "127.0.0.1" || u.Hostname() == "localhost")
		if err != nil || u.Scheme != "https" && !isLocal || u.Host == "" || u.User != nil {
			return nil, fmt.Errorf("verify: %q is not an https URL", verify)
		}
	}
	text, err := secret.Read(secretFile)
	if err != nil {
		return nil, err
	}
	return web.NewCaptcha(service, siteKey, text, verify)
}
