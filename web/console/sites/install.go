package sites

import (
	"fmt"
	"strings"

	"github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/web/console/shell"
)

// installPage is the data of the page about connectors.
type installPage struct {
	site.Site
	Server string // public URL of the server
	Rules  string // URL of the rules
	Key    string // the site key
	With   string // the chosen connector
	Kinds  []installKind
	Seen   int // connectors that reported in the last day
}

// installKind is a kind of connector.
type installKind struct{ Name, Title, For string }

// installKinds are the kinds of connectors.
var installKinds = []installKind{
	{"proxy", "Reverse proxy", "In front of anything that speaks HTTP."},
	{"nginx", "nginx", "For a site that already runs behind nginx."},
	{"go", "Go", "For a site written in Go."},
	{"edge", "Edge", "For Cloudflare Workers and other platforms that run JavaScript."},
}

// For describes the chosen connector.
func (p installPage) For() string {
	for _, k := range p.Kinds {
		if k.Name == p.With {
			return k.For
		}
	}
	return ""
}

func (h *handlers) install(x *shell.Request) error {
	ctx, cancel := x.Wait()
	defer cancel()
	s, err := h.sites.Site(ctx, x.Actor, x.Param("site"))
	if err != nil {
		return err
	}
	p := installPage{
		Site: s, Server: h.publicURL, Rules: h.publicURL + "/v1/sites/" + s.Name + "/rules",
		Kinds: installKinds, With: installKinds[0].Name,
	}
	for _, k := range installKinds {
		if k.Name == x.QueryParam("with") {
			p.With = k.Name
		}
	}
	if p.Key, err = h.sites.Key(ctx, x.Actor); err != nil {
		return err
	}
	connectors, err := h.sites.Connectors(ctx, x.Actor, s.Name)
	if err != nil {
		return err
	}
	p.Seen = len(connectors)
	return x.Page("site-install", p)
}

// Routes returns the routes of a Worker in TOML.
func (p installPage) Routes() string {
	var list []string
	for _, host := range p.Hosts {
		list = append(list, fmt.Sprintf("{ pattern = %q, zone_name = %q }", host+"/*", zoneOf(host)))
	}
	if len(list) == 0 {
		return `{ pattern = "shop.example.com/*", zone_name = "example.com" }`
	}
	return strings.Join(list, ", ")
}

// zoneOf guesses the DNS zone of a host: its last two labels.
func zoneOf(host string) string {
	labels := strings.Split(host, ".")
	return strings.Join(labels[max(0, len(labels)-2):], ".")
}
