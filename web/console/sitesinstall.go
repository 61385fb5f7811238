package console

import (
	"fmt"
	"strings"

	sites "github.com/proofline/proofline/console/site"
)

// installPage is what the page on connectors shows.
type installPage struct {
	sites.Site
	Server string // its public URL
	Rules  string // URL of the rules
	Key    string // the site key
	With   string // the connector that is chosen
	Kinds  []installKind
	Seen   int // connectors that were heard of within a day
}

// installKind is a connector to choose.
type installKind struct{ Name, Title, For string }

// installKinds are the connectors there are.
var installKinds = []installKind{
	{"proxy", "Reverse proxy", "In front of anything that speaks HTTP."},
	{"nginx", "nginx", "For a site that is behind nginx already."},
	{"go", "Go", "For a site that is a Go program."},
	{"edge", "Edge", "For Cloudflare Workers, and other platforms that run scripts."},
}

// For says what the chosen connector is for.
func (p installPage) For() string {
	for _, k := range p.Kinds {
		if k.Name == p.With {
			return k.For
		}
	}
	return ""
}

func (c *Console) showInstall(x *request) error {
	ctx, cancel := x.wait()
	defer cancel()
	s, err := c.Sites.Site(ctx, x.Actor, x.Param("site"))
	if err != nil {
		return err
	}
	p := installPage{Site: s, Server: c.PublicURL, Rules: c.PublicURL + "/v1/sites/" + s.Name + "/rules", Kinds: installKinds, With: installKinds[0].Name}
	for _, k := range installKinds {
		if k.Name == x.QueryParam("with") {
			p.With = k.Name
		}
	}
	if p.Key, err = c.Sites.Key(ctx, x.Actor); err != nil {
		return err
	}
	connectors, err := c.Sites.Connectors(ctx, x.Actor, s.Name)
	if err != nil {
		return err
	}
	p.Seen = len(connectors)
	return x.page("site-install", p)
}

// Routes are those of a Worker, as TOML has them.
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

// zoneOf guesses the zone of a host: its last two labels.
func zoneOf(host string) string {
	labels := strings.Split(host, ".")
	return strings.Join(labels[max(0, len(labels)-2):], ".")
}
