package manage

import (
	"net/http"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/internal/wire"
)

// siteRules serves the rules of sites: signed for connectors, earlier versions, and their decisions about URLs.
type siteRules struct{ sites *site.Sites }

func (a siteRules) routes() []route {
	const tag = "sites"
	return []route{
		{
			method: http.MethodGet, path: "sites/{site}/rules", scope: account.Connect, name: "signedRules", tag: tag,
			summary: "Get the signed rules of a site, as connectors do",
			more:    "A C2SP note signed with the site key: the lines proofline-rules/v1, name and version, and the rules as they were written.",
			text:    true, tagged: true, cached: true, do: a.signedRules,
		},
		{
			method: http.MethodPost, path: "sites/{site}/check", scope: account.Read, name: "checkSite", tag: tag,
			summary: "Show which rules decide about URLs, and which URLs are unprotected",
			more:    "No requests are sent to the URLs.",
			in:      wire.SiteCheckInput{}, most: maxSiteBody,
			example: `{"urls": ["https://shop.example.com/tickets"]}`,
			out:     wire.SiteCheck{}, do: a.checkSite,
		},
		{
			method: http.MethodGet, path: "sites/{site}/history", scope: account.Read, name: "listSiteHistory",
			tag:     tag,
			summary: "List the versions of a site's rules, newest first", more: "The latest 100 are kept.",
			out: wire.SiteHistory{}, do: a.listSiteHistory,
		},
		{
			method: http.MethodGet, path: "sites/{site}/history/{version}", scope: account.Read,
			name: "showSiteVersion", tag: tag,
			summary: "Show one version of a site's rules", out: wire.SiteVersion{}, do: a.showSiteVersion,
		},
		{
			method: http.MethodGet, path: "site-key", scope: account.Read, name: "showSiteKey", tag: tag,
			summary: "Show the key with which connectors verify rules", out: wire.SiteKey{}, do: a.showSiteKey,
		},
	}
}

func (a siteRules) signedRules(c *call) (reply, error) {
	s, err := a.sites.Signed(c, c.actor, c.param("site"))
	if err != nil {
		return reply{}, err
	}
	out := reply{raw: s.Note, mediaType: "text/plain; charset=utf-8", etag: s.ETag, cache: "private, no-cache"}
	if c.isKnown(s.ETag) {
		out.raw, out.status = nil, http.StatusNotModified
	}
	return out, nil
}

func (a siteRules) checkSite(c *call) (reply, error) {
	in, err := decode[wire.SiteCheckInput](c)
	if err != nil {
		return reply{}, err
	}
	at := time.Now()
	if in.At != nil {
		at = *in.At
	}
	found, err := a.sites.Check(c, c.actor, c.param("site"), in.Rules, in.URLs, at)
	if err != nil {
		return reply{}, err
	}
	out := wire.SiteCheck{Findings: make([]wire.Finding, len(found))}
	for i, f := range found {
		out.Findings[i] = wire.Finding{
			URL: f.URL, Outcome: f.Decision.Outcome.String(), Room: f.Decision.Room, Rule: f.Decision.Rule,
			Warnings: append([]string{}, f.Warnings...),
		}
	}
	return answer(out)
}

func (a siteRules) listSiteHistory(c *call) (reply, error) {
	list, err := a.sites.History(c, c.actor, c.param("site"))
	if err != nil {
		return reply{}, err
	}
	out := wire.SiteHistory{Versions: make([]wire.SiteVersionSummary, len(list))}
	for i, v := range list {
		out.Versions[i] = wire.SiteVersionSummary{Version: v.Number, Changed: v.Changed.UTC(), By: v.By, Size: v.Size}
	}
	return answer(out)
}

func (a siteRules) showSiteVersion(c *call) (reply, error) {
	version, err := c.version()
	if err != nil {
		return reply{}, err
	}
	s, err := a.sites.Version(c, c.actor, c.param("site"), version)
	if err != nil {
		return reply{}, err
	}
	return withRules(wire.SiteVersion{Version: s.Version, Changed: s.Changed.UTC(), By: s.By, Rules: nil}, s.Rules)
}

func (a siteRules) showSiteKey(c *call) (reply, error) {
	key, err := a.sites.Key(c, c.actor)
	return reply{body: wire.SiteKey{Key: key}}, err
}
