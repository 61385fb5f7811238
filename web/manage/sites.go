package manage

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/proofline/proofline/connector/rules"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/site"
)

// maxSiteBody is the maximum size of a body with rules, in bytes.
const maxSiteBody = rules.MaxSize + 64<<10

// siteJSON is a site with its current rules. Rules must be its last member.
type siteJSON struct {
	Name     string          `json:"name"`
	URL      string          `json:"url" doc:"URL at which connectors fetch its rules."`
	Version  uint64          `json:"version" doc:"Version of the rules, incremented with each change."`
	Changed  time.Time       `json:"changed"`
	By       string          `json:"changed_by"`
	Hosts    []string        `json:"hosts" doc:"Hosts in the rules; empty: any host."`
	Rooms    []string        `json:"rooms" doc:"URLs of the rooms in the rules."`
	Warnings []warningJSON   `json:"warnings" doc:"Likely mistakes, given the current state of the rooms."`
	Rules    json.RawMessage `json:"rules" doc:"The rules as they were written, including white space; tabs are two spaces."`
}

type warningJSON struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// siteSummaryJSON is a site in a list.
type siteSummaryJSON struct {
	Name       string    `json:"name"`
	Version    uint64    `json:"version" doc:"Version of the rules, incremented with each change."`
	Changed    time.Time `json:"changed"`
	By         string    `json:"changed_by"`
	Hosts      []string  `json:"hosts" doc:"Hosts in the rules; empty: any host."`
	Rooms      []string  `json:"rooms" doc:"URLs of the rooms in the rules."`
	Connectors int       `json:"connectors" doc:"Number of connectors that reported in the last minute."`
	Behind     int       `json:"behind" doc:"Number of these that run older rules."`
}

type siteList struct {
	Sites []siteSummaryJSON `json:"sites"`
}

type siteInput struct {
	Name  string          `json:"name" need:"true" doc:"1 to 63 of a-z, 0-9 and -. It stays."`
	Rules json.RawMessage `json:"rules" need:"true" doc:"Rules document; connector/rules/FORMAT.md describes it."`
}

type siteRulesInput struct {
	Rules json.RawMessage `json:"rules" need:"true" doc:"Rules document; connector/rules/FORMAT.md describes it."`
}

// siteVersionJSON is one version of a site's rules. Rules must be its last member.
type siteVersionJSON struct {
	Version uint64          `json:"version"`
	Changed time.Time       `json:"changed"`
	By      string          `json:"changed_by"`
	Rules   json.RawMessage `json:"rules" doc:"The rules as they were written, including white space."`
}

type siteVersionSummary struct {
	Version uint64    `json:"version"`
	Changed time.Time `json:"changed"`
	By      string    `json:"changed_by"`
	Size    int       `json:"size" doc:"Size of the rules in bytes."`
}

type siteHistoryJSON struct {
	Versions []siteVersionSummary `json:"versions"`
}

// connectorJSON is a connector process that reports.
type connectorJSON struct {
	Node         string            `json:"node" doc:"Random ID made when the process started."`
	Site         string            `json:"site" doc:"Site whose rules it runs; empty if they belong to no site of this server."`
	Kind         string            `json:"kind" enum:"middleware,proxy,nginx,edge"`
	Version      string            `json:"version"`
	RulesVersion uint64            `json:"rules_version" doc:"Version of the rules that it runs."`
	Behind       bool              `json:"behind" doc:"Whether there are newer rules."`
	Connected    bool              `json:"connected" doc:"Whether it reported in the last minute."`
	Seen         time.Time         `json:"seen" doc:"Time of the latest report, accurate to 5 seconds."`
	Counts       map[string]uint64 `json:"counts" doc:"Counters by name, since it started."`
}

type connectorList struct {
	Connectors []connectorJSON `json:"connectors"`
}

type siteCheckInput struct {
	URLs  []string        `json:"urls" need:"true" doc:"URLs as browsers show them, at most 100; fewer if there are more than 100 rules."`
	At    *time.Time      `json:"at" doc:"Time at which they are opened. Default: now."`
	Rules json.RawMessage `json:"rules" doc:"Rules to check instead of the site's."`
}

type findingJSON struct {
	URL      string   `json:"url"`
	Outcome  string   `json:"outcome" enum:"bypass,queue,closed,block"`
	Room     string   `json:"room" doc:"Name of the room in the rules; empty: none."`
	Rule     string   `json:"rule" doc:"Name of the deciding rule; empty: none."`
	Warnings []string `json:"warnings" doc:"Addresses that often lead to the same page but are not protected."`
}

type siteCheckJSON struct {
	Findings []findingJSON `json:"findings"`
}

type siteKeyJSON struct {
	Key string `json:"key" doc:"Key with which connectors verify the rules of all the organization's sites (C2SP signed note)."`
}

const rulesExample = `{"version": 1, "hosts": ["shop.example.com"],
  "rooms": {"sale": {"url": "https://queue.example.com/r/sale"}},
  "rules": [{"name": "tickets", "when": {"path": {"prefix": "/tickets"}}, "action": "queue sale"}]}`

func (a *API) siteRoutes() []route {
	const tag = "sites"
	return []route{
		{
			method: http.MethodGet, path: "sites", scope: account.Read, name: "listSites", tag: tag,
			summary: "List the sites of the organization, by name", out: siteList{}, do: a.listSites,
		},
		{
			method: http.MethodPost, path: "sites", scope: account.Operate, name: "createSite", tag: tag,
			summary: "Create a site", more: "Rooms of this server that the rules name must belong to the organization.",
			in: siteInput{}, most: maxSiteBody, example: `{"name": "shop", "rules": ` + rulesExample + `}`,
			out: siteJSON{}, status: http.StatusCreated, key: keyKept, tagged: true, do: a.createSite,
		},
		{
			method: http.MethodGet, path: "sites/{site}", scope: account.Read, name: "showSite", tag: tag,
			summary: "Show a site, its rules, and likely mistakes in them", out: siteJSON{}, tagged: true, do: a.showSite,
		},
		{
			method: http.MethodPut, path: "sites/{site}", scope: account.Operate, name: "changeSite", tag: tag,
			summary: "Replace the rules of a site", more: "They get the next version, unless they equal the current rules.",
			in: siteRulesInput{}, most: maxSiteBody, example: `{"rules": ` + rulesExample + `}`, out: siteJSON{}, tagged: true, matches: true, do: a.changeSite,
		},
		{
			method: http.MethodDelete, path: "sites/{site}", scope: account.Operate, name: "deleteSite", tag: tag,
			summary: "Delete a site", more: "Connectors keep the rules they have.", status: http.StatusNoContent,
			do: func(c *call) (reply, error) { return reply{}, a.Sites.Delete(c, c.actor, c.param("site")) },
		},
		{
			method: http.MethodGet, path: "sites/{site}/rules", scope: account.Connect, name: "signedRules", tag: tag,
			summary: "Get the signed rules of a site, as connectors do",
			more:    "A C2SP note signed with the site key: the lines proofline-rules/v1, name and version, and the rules as they were written.",
			text:    true, tagged: true, cached: true, do: a.signedRules,
		},
		{
			method: http.MethodPost, path: "sites/{site}/check", scope: account.Read, name: "checkSite", tag: tag,
			summary: "Show which rules decide about URLs, and which URLs are unprotected", more: "No requests are sent to the URLs.",
			in: siteCheckInput{}, most: maxSiteBody, example: `{"urls": ["https://shop.example.com/tickets"]}`, out: siteCheckJSON{}, do: a.checkSite,
		},
		{
			method: http.MethodGet, path: "sites/{site}/connectors", scope: account.Read, name: "listSiteConnectors", tag: tag,
			summary: "List the connectors that run the rules of a site, latest report first", more: "Connectors that have not reported for a day are removed.",
			out: connectorList{},
			do:  func(c *call) (reply, error) { return shownConnectors(a.Sites.Connectors(c, c.actor, c.param("site"))) },
		},
		{
			method: http.MethodGet, path: "sites/{site}/history", scope: account.Read, name: "listSiteHistory", tag: tag,
			summary: "List the versions of a site's rules, newest first", more: "The latest 100 are kept.", out: siteHistoryJSON{}, do: a.listSiteHistory,
		},
		{
			method: http.MethodGet, path: "sites/{site}/history/{version}", scope: account.Read, name: "showSiteVersion", tag: tag,
			summary: "Show one version of a site's rules", out: siteVersionJSON{}, do: a.showSiteVersion,
		},
		{
			method: http.MethodPost, path: "sites/{site}/history/{version}/restore", scope: account.Operate, name: "restoreSite", tag: tag,
			summary: "Restore earlier rules, under a new version", out: siteJSON{}, tagged: true, matches: true, do: a.restoreSite,
		},
		{
			method: http.MethodGet, path: "connectors", scope: account.Read, name: "listConnectors", tag: tag,
			summary: "List all connectors of the organization, latest report first", more: "Connectors that have not reported for a day are removed.", out: connectorList{},
			do: func(c *call) (reply, error) { return shownConnectors(a.Sites.AllConnectors(c, c.actor)) },
		},
		{
			method: http.MethodGet, path: "site-key", scope: account.Read, name: "showSiteKey", tag: tag,
			summary: "Show the key with which connectors verify rules", out: siteKeyJSON{}, do: a.showSiteKey,
		},
	}
}

func siteTag(version uint64) string { return `"` + strconv.FormatUint(version, 10) + `"` }

// shownSite answers with a site, unless err is set.
func (a *API) shownSite(c *call, s site.Site, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	warnings, err := a.Sites.Warnings(c, s)
	if err != nil {
		return reply{}, err
	}
	out := siteJSON{s.Name, a.location("sites", s.Name) + "/rules", s.Version, s.Changed.UTC(), s.By, s.Hosts, s.Rooms, make([]warningJSON, len(warnings)), nil}
	for i, w := range warnings {
		out.Warnings[i] = warningJSON(w)
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
	return reply{raw: bytes.Join([][]byte{head, bytes.TrimSuffix(rules, []byte("\n")), []byte("}\n")}, nil), mediaType: "application/json"}, nil
}

func (a *API) listSites(c *call) (reply, error) {
	list, err := a.Sites.List(c, c.actor)
	if err != nil {
		return reply{}, err
	}
	out := siteList{Sites: make([]siteSummaryJSON, len(list))}
	for i, s := range list {
		out.Sites[i] = siteSummaryJSON{s.Name, s.Version, s.Changed.UTC(), s.By, s.Hosts, s.Rooms, s.Connectors, s.Behind}
	}
	return answer(out)
}

func (a *API) createSite(c *call) (reply, error) {
	in, err := decode[siteInput](c)
	if err != nil {
		return reply{}, err
	}
	made, err := a.Sites.Create(c, c.actor, in.Name, in.Rules)
	out, err := a.shownSite(c, made, err)
	out.location = a.location("sites", in.Name)
	return out, err
}

func (a *API) showSite(c *call) (reply, error) {
	s, err := a.Sites.Site(c, c.actor, c.param("site"))
	return a.shownSite(c, s, err)
}

// seenVersion returns the version that a change expects, or 0 without If-Match. It returns
// [control.ErrChanged] if If-Match names another one.
func (a *API) seenVersion(c *call) (uint64, error) {
	s, err := a.Sites.Site(c, c.actor, c.param("site"))
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

func (a *API) changeSite(c *call) (reply, error) {
	seen, err := a.seenVersion(c)
	if err != nil {
		return reply{}, err
	}
	in, err := decode[siteRulesInput](c)
	if err != nil {
		return reply{}, err
	}
	s, err := a.Sites.Update(c, c.actor, c.param("site"), seen, in.Rules)
	return a.shownSite(c, s, err)
}

func (a *API) signedRules(c *call) (reply, error) {
	s, err := a.Sites.Signed(c, c.actor, c.param("site"))
	if err != nil {
		return reply{}, err
	}
	out := reply{raw: s.Note, mediaType: "text/plain; charset=utf-8", etag: s.ETag, cache: "private, no-cache"}
	if c.isKnown(s.ETag) {
		out.raw, out.status = nil, http.StatusNotModified
	}
	return out, nil
}

func (a *API) checkSite(c *call) (reply, error) {
	in, err := decode[siteCheckInput](c)
	if err != nil {
		return reply{}, err
	}
	at := time.Now()
	if in.At != nil {
		at = *in.At
	}
	found, err := a.Sites.Check(c, c.actor, c.param("site"), in.Rules, in.URLs, at)
	if err != nil {
		return reply{}, err
	}
	out := siteCheckJSON{Findings: make([]findingJSON, len(found))}
	for i, f := range found {
		out.Findings[i] = findingJSON{f.URL, f.Decision.Outcome.String(), f.Decision.Room, f.Decision.Rule, append([]string{}, f.Warnings...)}
	}
	return answer(out)
}

func shownConnectors(list []site.Connector, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	out := connectorList{Connectors: make([]connectorJSON, len(list))}
	for i, n := range list {
		out.Connectors[i] = connectorJSON{n.ID, n.Site, n.Kind, n.Version, n.RulesVersion, n.IsBehind, n.IsConnected, n.Seen.UTC(), n.Counts}
	}
	return answer(out)
}

func (a *API) listSiteHistory(c *call) (reply, error) {
	list, err := a.Sites.History(c, c.actor, c.param("site"))
	if err != nil {
		return reply{}, err
	}
	out := siteHistoryJSON{Versions: make([]siteVersionSummary, len(list))}
	for i, v := range list {
		out.Versions[i] = siteVersionSummary{v.Number, v.Changed.UTC(), v.By, v.Size}
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

func (a *API) showSiteVersion(c *call) (reply, error) {
	version, err := c.version()
	if err != nil {
		return reply{}, err
	}
	s, err := a.Sites.Version(c, c.actor, c.param("site"), version)
	if err != nil {
		return reply{}, err
	}
	return withRules(siteVersionJSON{s.Version, s.Changed.UTC(), s.By, nil}, s.Rules)
}

func (a *API) restoreSite(c *call) (reply, error) {
	version, err := c.version()
	if err != nil {
		return reply{}, err
	}
	seen, err := a.seenVersion(c)
	if err != nil {
		return reply{}, err
	}
	s, err := a.Sites.Restore(c, c.actor, c.param("site"), seen, version)
	return a.shownSite(c, s, err)
}

func (a *API) showSiteKey(c *call) (reply, error) {
	key, err := a.Sites.Key(c, c.actor)
	if err != nil {
		return reply{}, err
	}
	return answer(siteKeyJSON{key})
}
