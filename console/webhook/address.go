package webhook

import (
	"fmt"
	"net/netip"
	"net/url"

	"github.com/proofline/proofline/internal/outbound"
)

// maxURL is the maximum length of an endpoint's URL.
const maxURL = 2_000

// checkURL returns the problem with an endpoint's URL; "" if there is none.
func checkURL(g outbound.Guard, text string) string {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return "is required: the URL that events are sent to"
	case err != nil || u.Host == "" || u.Opaque != "" || len(text) > maxURL:
		return fmt.Sprintf("must be a URL of at most %d characters, such as https://example.com/hooks", maxURL)
	case u.Scheme == "http" && len(g.Allowed) == 0, u.Scheme != "http" && u.Scheme != "https":
		return "must begin with https://"
	case u.User != nil:
		return "must not contain a user or password; events are signed instead"
	case u.Fragment != "":
		return "must not have a fragment"
	case !outbound.IsPort(u.Port()):
		return "must have port 80, 443, or one from 1024 on"
	}
	a, err := netip.ParseAddr(u.Hostname())
	if err == nil && g.Check(a, u.Scheme == "http") != nil {
		return "must have a public address; the server's operator can allow others"
	}
	return ""
}
