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
	"github.com/proofline/proofline/console/desk"
	"github.com/proofline/proofline/console/site"
)

// maxSiteBody is the most bytes of a body with rules.
const maxSiteBody = rules.MaxSize + 64<<10

// siteJSON is a site as it is protected now. Rules are its last member.
type siteJSON struct {
	Name     string          `json:"name"`
	URL      string          `json:"url" doc:"Where connectors get its rules."`
	Serial   uint64          `json:"serial" doc:"Of the rules: counts their changes."`
	Changed  time.Time       `json:"changed"`
	By       string          `json:"changed_by"`
	Hosts    []string        `json:"hosts" doc:"That the rules name; none: any."`
	Rooms    []string        `json:"rooms" doc:"URLs of the rooms that the rules name."`
	Warnings []warningJSON   `json:"warnings" doc:"What may be a mistake, as the rooms are now."`
	Rules    json.RawMessage `json:"rules" doc:"As they were written, white space too; tabs are two spaces."`
}

type warningJSON struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// siteSummaryJSON is a site in the list.
type siteSummaryJSON struct {
	Name       string    `json:"name"`
	Serial     uint64    `json:"serial" doc:"Of the rules: counts their changes."`
	Changed    time.Time `json:"changed"`
	By         string    `json:"changed_by"`
	Hosts      []string  `json:"hosts" doc:"That the rules name; none: any."`
	Rooms      []string  `json:"rooms" doc:"URLs of the rooms that the rules name."`
	Connectors int       `json:"connectors" doc:"Heard of in the last minute."`
	Behind     int       `json:"behind" doc:"Of these: go by older rules."`
}

type siteList struct {
	Sites []siteSummaryJSON `json:"sites"`
}

type siteInput struct {
	Name  string          `json:"name" need:"true" doc:"1 to 63 of a-z, 0-9 and -. It stays."`
	Rules json.RawMessage `json:"rules" need:"true" doc:"FORMAT.md in connector/rules describes them."`
}

type siteRulesInput struct {
	Rules json.RawMessage `json:"rules" need:"true" doc:"FORMAT.md in connector/rules describes them."`
}

// siteVersionJSON is a document that a site has or had. Rules are its last member.
type siteVersionJSON struct {
	Serial  uint64          `json:"serial"`
	Changed time.Time       `json:"changed"`
	By      string          `json:"changed_by"`
	Rules   json.RawMessage `json:"rules" doc:"As they were written, white space too."`
}

type siteVersionSummary struct {
	Serial  uint64    `json:"serial"`
	Changed time.Time `json:"changed"`
	By      string    `json:"changed_by"`
	Size    int       `json:"size" doc:"Bytes of the rules."`
}

type siteHistoryJSON struct {
	Versions []siteVersionSummary `json:"versions"`
}

// connectorJSON is a process that reports.
type connectorJSON struct {
	Node      string            `json:"node" doc:"Random, made when the process began."`
	Site      string            `json:"site" doc:"Whose rules it goes by; empty when they are of no site of this server."`
	Kind      string            `json:"kind" enum:"middleware,proxy,nginx,edge"`
	Version   string            `json:"version"`
	Serial    uint64            `json:"serial" doc:"Of the rules that it goes by."`
	Behind    bool              `json:"behind" doc:"There are newer rules."`
	Connected bool              `json:"connected" doc:"It was heard of in the last minute."`
	Seen      time.Time         `json:"seen" doc:"To 5 seconds."`
	Counts    map[string]uint64 `json:"counts" doc:"What it did since it began, by name."`
}

type connectorList struct {
	Connectors []connectorJSON `json:"connectors"`
}

type siteCheckInput struct {
	URLs  []string        `json:"urls" need:"true" doc:"As browsers show them, at most 100; fewer for more than 100 rules."`
	At    *time.Time      `json:"at" doc:"When they are opened. Default: now."`
	Rules json.RawMessage `json:"rules" doc:"To be looked at in the place of the rules of the site."`
}

type findingJSON struct {
	URL      string   `json:"url"`
	Outcome  string   `json:"outcome" enum:"bypass,queue,closed,block"`
	Room     string   `json:"room" doc:"As the rules call it; empty for none."`
	Rule     string   `json:"rule" doc:"That decides; empty: none does."`
	Warnings []string `json:"warnings" doc:"Addresses that often lead to the same page and do not wait."`
}

type siteCheckJSON struct {
	Findings []findingJSON `json:"findings"`
}

type siteKeyJSON struct {
	Key string `json:"key" doc:"Verifies the rules of all sites of the organization (C2SP signed note). Connectors are given it."`
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
			summary: "Protect a site", more: "Rooms of this server that the rules name must be rooms of the organization.",
			in: siteInput{}, most: maxSiteBody, example: `{"name": "shop", "rules": ` + rulesExample + `}`,
			out: siteJSON{}, status: http.StatusCreated, key: keyKept, tagged: true, do: a.createSite,
		},
		{
			method: http.MethodGet, path: "sites/{site}", scope: account.Read, name: "showSite", tag: tag,
			summary: "Show a site, its rules, and what may be a mistake in them", out: siteJSON{}, tagged: true, do: a.showSite,
		},
		{
			method: http.MethodPut, path: "sites/{site}", scope: account.Operate, name: "changeSite", tag: tag,
			summary: "Replace the rules of a site", more: "They get the next serial, unless they are those in force.",
			in: siteRulesInput{}, most: maxSiteBody, example: `{"rules": ` + rulesExample + `}`, out: siteJSON{}, tagged: true, matches: true, do: a.changeSite,
		},
		{
			method: http.MethodDelete, path: "sites/{site}", scope: account.Operate, name: "deleteSite", tag: tag,
			summary: "Delete a site", more: "Connectors stay with the rules they have.", status: http.StatusNoContent,
			do: func(c *call) (reply, error) { return reply{}, a.Sites.Delete(c, c.actor, c.param("site")) },
		},
		{
			method: http.MethodGet, path: "sites/{site}/rules", scope: account.Connect, name: "signedRules", tag: tag,
			summary: "Get the rules of a site, signed, as connectors do",
			more:    "A C2SP signed note of the site key: the lines proofline-rules/v1, name and serial, and the rules as they were written.",
			text:    true, tagged: true, cached: true, do: a.signedRules,
		},
		{
			method: http.MethodPost, path: "sites/{site}/check", scope: account.Read, name: "checkSite", tag: tag,
			summary: "Say which rule decides about addresses, and what is not protected", more: "Nothing is sent to them.",
			in: siteCheckInput{}, most: maxSiteBody, example: `{"urls": ["https://shop.example.com/tickets"]}`, out: siteCheckJSON{}, do: a.checkSite,
		},
		{
			method: http.MethodGet, path: "sites/{site}/connectors", scope: account.Read, name: "listSiteConnectors", tag: tag,
			summary: "List the connectors that go by the rules of a site, the latest heard of first", more: "Those not heard of for a day are forgotten.",
			out: connectorList{},
			do:  func(c *call) (reply, error) { return shownConnectors(a.Sites.Connectors(c, c.actor, c.param("site"))) },
		},
		{
			method: http.MethodGet, path: "sites/{site}/history", scope: account.Read, name: "listSiteHistory", tag: tag,
			summary: "List the rules that a site has and had, the newest first", more: "The latest 100 are kept.", out: siteHistoryJSON{}, do: a.listSiteHistory,
		},
		{
			method: http.MethodGet, path: "sites/{site}/history/{serial}", scope: account.Read, name: "showSiteVersion", tag: tag,
			summary: "Show rules that a site has or had", out: siteVersionJSON{}, do: a.showSiteVersion,
		},
		{
			method: http.MethodPost, path: "sites/{site}/history/{serial}/restore", scope: account.Operate, name: "restoreSite", tag: tag,
			summary: "Put rules of before back, under a new serial", out: siteJSON{}, tagged: true, matches: true, do: a.restoreSite,
		},
		{
			method: http.MethodGet, path: "connectors", scope: account.Read, name: "listConnectors", tag: tag,
			summary: "List all connectors of the organization, the latest heard of first", more: "Those not heard of for a day are forgotten.", out: connectorList{},
			do: func(c *call) (reply, error) { return shownConnectors(a.Sites.AllConnectors(c, c.actor)) },
		},
		{
			method: http.MethodGet, path: "site-key", scope: account.Read, name: "showSiteKey", tag: tag,
			summary: "Show the key that connectors verify rules with", out: siteKeyJSON{}, do: a.showSiteKey,
		},
	}
}

func siteTag(serial uint64) string { return `"` + strconv.FormatUint(serial, 10) + `"` }

// shownSite answers with a site, unless something went wrong.
func (a *API) shownSite(c *call, s site.Site, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	warnings, err := a.Sites.Warnings(c, s)
	if err != nil {
		return reply{}, err
	}
	out := siteJSON{s.Name, a.location("sites", s.Name) + "/rules", s.Serial, s.Changed.UTC(), s.By, s.Hosts, s.Rooms, make([]warningJSON, len(warnings)), nil}
	for i, w := range warnings {
		out.Warnings[i] = warningJSON(w)
	}
	r, err := withRules(out, s.Rules)
	r.etag = siteTag(s.Serial)
	return r, err
}

// withRules answers with a body whose last member are rules, as they were
// written: encoding/json would take their white space out.
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
		out.Sites[i] = siteSummaryJSON{s.Name, s.Serial, s.Changed.UTC(), s.By, s.Hosts, s.Rooms, s.Connectors, s.Behind}
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

// seenSerial is the serial that a change of a site is about: 0 for whichever
// there is. [desk.ErrChanged] when If-Match says that it was another.
func (a *API) seenSerial(c *call) (uint64, error) {
	s, err := a.Sites.Site(c, c.actor, c.param("site"))
	if err != nil {
		return 0, err
	}
	condition, ok := c.ifMatch()
	switch {
	case !ok:
		return 0, nil
	case !matches(condition, siteTag(s.Serial)):
		return 0, desk.ErrChanged
	}
	return s.Serial, nil
}

func (a *API) changeSite(c *call) (reply, error) {
	seen, err := a.seenSerial(c)
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
		out.Connectors[i] = connectorJSON{n.ID, n.Site, n.Kind, n.Version, n.Serial, n.IsBehind, n.IsConnected, n.Seen.UTC(), n.Counts}
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
		out.Versions[i] = siteVersionSummary{v.Serial, v.Changed.UTC(), v.By, v.Size}
	}
	return answer(out)
}

// serial reads the serial of the path. What is none names nothing.
func (c *call) serial() (uint64, error) {
	n, err := strconv.ParseUint(c.param("serial"), 10, 64)
	if err != nil || n > math.MaxInt64 {
		return 0, account.ErrNotFound
	}
	return n, nil
}

func (a *API) showSiteVersion(c *call) (reply, error) {
	serial, err := c.serial()
	if err != nil {
		return reply{}, err
	}
	s, err := a.Sites.Version(c, c.actor, c.param("site"), serial)
	if err != nil {
		return reply{}, err
	}
	return withRules(siteVersionJSON{s.Serial, s.Changed.UTC(), s.By, nil}, s.Rules)
}

func (a *API) restoreSite(c *call) (reply, error) {
	serial, err := c.serial()
	if err != nil {
		return reply{}, err
	}
	seen, err := a.seenSerial(c)
	if err != nil {
		return reply{}, err
	}
	s, err := a.Sites.Restore(c, c.actor, c.param("site"), seen, serial)
	return a.shownSite(c, s, err)
}

func (a *API) showSiteKey(c *call) (reply, error) {
	key, err := a.Sites.Key(c, c.actor)
	if err != nil {
		return reply{}, err
	}
	return answer(siteKeyJSON{key})
}
