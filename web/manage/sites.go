package manage

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"github.com/proofline/proofline/connector/rules"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/internal/wire"
)

// maxSiteBody is the maximum size of a body with rules, in bytes.
const maxSiteBody = rules.MaxSize + 64<<10

const rulesExample = `{"version": 1, "hosts": ["shop.example.com"],
  "rooms": {"sale": {"url": "https://queue.example.com/r/sale"}},
  "rules": [{"name": "tickets", "when": {"path": {"prefix": "/tickets"}}, "action": "queue sale"}]}`

// sites serves sites, their rules and their connectors.
type sites struct {
	sites *site.Sites
	links links
}

func (a sites) routes() []route {
	const tag = "sites"
	return []route{
		{
			method: http.MethodGet, path: "sites", scope: account.Read, name: "listSites", tag: tag,
			summary: "List the sites of the organization, by name", out: wire.SiteList{}, do: a.listSites,
		},
		{
			method: http.MethodPost, path: "sites", scope: account.Operate, name: "createSite", tag: tag,
			summary: "Create a site", more: "Rooms of this server that the rules name must belong to the organization.",
			in: wire.SiteInput{}, most: maxSiteBody, example: `{"name": "shop", "rules": ` + rulesExample + `}`,
			out: wire.Site{}, status: http.StatusCreated, key: keyKept, tagged: true, do: a.createSite,
		},
		{
			method: http.MethodGet, path: "sites/{site}", scope: account.Read, name: "showSite", tag: tag,
			summary: "Show a site, its rules, and likely mistakes in them", out: wire.Site{}, tagged: true,
			do: a.showSite,
		},
		{
			method: http.MethodPut, path: "sites/{site}", scope: account.Operate, name: "changeSite", tag: tag,
			summary: "Replace the rules of a site",
			more:    "They get the next version, unless they equal the current rules.",
			in:      wire.SiteRulesInput{}, most: maxSiteBody, example: `{"rules": ` + rulesExample + `}`,
			out:    wire.Site{},
			tagged: true, matches: true, do: a.changeSite,
		},
		{
			method: http.MethodDelete, path: "sites/{site}", scope: account.Operate, name: "deleteSite", tag: tag,
			summary: "Delete a site", more: "Connectors keep the rules they have.", status: http.StatusNoContent,
			do: func(c *call) (reply, error) { return reply{}, a.sites.Delete(c, c.actor, c.param("site")) },
		},
		{
			method: http.MethodGet, path: "sites/{site}/connectors", scope: account.Read, name: "listSiteConnectors",
			tag:     tag,
			summary: "List the connectors that run the rules of a site, latest report first",
			more:    "Connectors that have not reported for a day are removed.",
			out:     wire.ConnectorList{},
			do: func(c *call) (reply, error) {
				return shownConnectors(a.sites.Connectors(c, c.actor, c.param("site")))
			},
		},
		{
			method: http.MethodPost, path: "sites/{site}/history/{version}/restore", scope: account.Operate,
			name: "restoreSite", tag: tag,
			summary: "Restore earlier rules, under a new version", out: wire.Site{}, tagged: true, matches: true,
			do: a.restoreSite,
		},
		{
			method: http.MethodGet, path: "connectors", scope: account.Read, name: "listConnectors", tag: tag,
			summary: "List all connectors of the organization, latest report first",
			more:    "Connectors that have not reported for a day are removed.", out: wire.ConnectorList{},
			do: func(c *call) (reply, error) { return shownConnectors(a.sites.AllConnectors(c, c.actor)) },
		},
	}
}

func siteTag(version uint64) string { return `"` + strconv.FormatUint(version, 10) + `"` }

// shownSite answers with a site, unless err is set.
func (a sites) shownSite(c *call, s site.Site, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	warnings, err := a.sites.Warnings(c, s)
	if err != nil {
		return reply{}, err
	}
	out := wire.Site{
		Name: s.Name, URL: a.links.to("sites", s.Name) + "/rules", Version: s.Version, Changed: s.Changed.UTC(),
		By: s.By, Hosts: s.Hosts, Rooms: s.Rooms, Warnings: make([]wire.Warning, len(warnings)), Rules: nil,
	}
	for i, w := range warnings {
		out.Warnings[i] = wire.Warning(w)
	}
	r, err := withRules(out, s.Rules)
	r.etag = siteTag(s.Version)
	return r, err
}

// withRules answers with a body whose last member is the rules in their original form, because
// encoding/json would remove their white space.
func withRules(body any, rules []byte) (reply, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return reply{}, err
	}
	head := bytes.TrimSuffix(text, []byte("null}"))
	text = bytes.Join([][]byte{head, bytes.TrimSuffix(rules, []byte("\n")), []byte("}\n")}, nil)
	return reply{raw: text, mediaType: "application/json"}, nil
}

func (a sites) listSites(c *call) (reply, error) {
	list, err := a.sites.List(c, c.actor)
	if err != nil {
		return reply{}, err
	}
	out := wire.SiteList{Sites: make([]wire.SiteSummary, len(list))}
	for i, s := range list {
		out.Sites[i] = wire.SiteSummary{
			Name: s.Name, Version: s.Version, Changed: s.Changed.UTC(), By: s.By, Hosts: s.Hosts, Rooms: s.Rooms,
			Connectors: s.Connectors, Behind: s.Behind,
		}
	}
	return answer(out)
}

func (a sites) createSite(c *call) (reply, error) {
	in, err := decode[wire.SiteInput](c)
	if err != nil {
		return reply{}, err
	}
	made, err := a.sites.Create(c, c.actor, in.Name, in.Rules)
	out, err := a.shownSite(c, made, err)
	out.location = a.links.to("sites", in.Name)
	return out, err
}

func (a sites) showSite(c *call) (reply, error) {
	s, err := a.sites.Site(c, c.actor, c.param("site"))
	return a.shownSite(c, s, err)
}

// seenVersion returns the version that a change expects, or 0 without If-Match. It returns
// [control.ErrChanged] if If-Match names another one.
func (a sites) seenVersion(c *call) (uint64, error) {
	s, err := a.sites.Site(c, c.actor, c.param("site"))
	if err != nil {
		return 0, err
	}
	condition, ok := c.ifMatch()
	switch {
	case !ok:
		return 0, nil
	case !matches(condition, siteTag(s.Version)):
		return 0, control.ErrChanged
	}
	return s.Version, nil
}

func (a sites) changeSite(c *call) (reply, error) {
	seen, err := a.seenVersion(c)
	if err != nil {
		return reply{}, err
	}
	in, err := decode[wire.SiteRulesInput](c)
	if err != nil {
		return reply{}, err
	}
	s, err := a.sites.Update(c, c.actor, c.param("site"), seen, in.Rules)
	return a.shownSite(c, s, err)
}

func shownConnectors(list []site.Connector, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	out := wire.ConnectorList{Connectors: make([]wire.Connector, len(list))}
	for i, n := range list {
		out.Connectors[i] = wire.Connector{
			Node: n.ID, Site: n.Site, Kind: n.Kind, Version: n.Version, RulesVersion: n.RulesVersion,
			Behind: n.IsBehind, Connected: n.IsConnected, Seen: n.Seen.UTC(), Counts: n.Counts,
		}
	}
	return answer(out)
}

// version parses the version in the path. For an invalid one it returns [account.ErrNotFound].
func (c *call) version() (uint64, error) {
	n, err := strconv.ParseUint(c.param("version"), 10, 64)
	if err != nil || n > math.MaxInt64 {
		return 0, account.ErrNotFound
	}
	return n, nil
}

func (a sites) restoreSite(c *call) (reply, error) {
	version, err := c.version()
	if err != nil {
		return reply{}, err
	}
	seen, err := a.seenVersion(c)
	if err != nil {
		return reply{}, err
	}
	s, err := a.sites.Restore(c, c.actor, c.param("site"), seen, version)
	return a.shownSite(c, s, err)
}
