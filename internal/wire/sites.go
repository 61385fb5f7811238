package wire

import (
	"encoding/json"
	"time"
)

// Site is a site with its current rules. Rules must be its last member.
type Site struct {
	Name     string          `json:"name"`
	URL      string          `json:"url" doc:"URL at which connectors fetch its rules."`
	Version  uint64          `json:"version" doc:"Version of the rules, incremented with each change."`
	Changed  time.Time       `json:"changed"`
	By       string          `json:"changed_by"`
	Hosts    []string        `json:"hosts" doc:"Hosts in the rules; empty: any host."`
	Rooms    []string        `json:"rooms" doc:"URLs of the rooms in the rules."`
	Warnings []Warning       `json:"warnings" doc:"Likely mistakes, given the current state of the rooms."`
	Rules    json.RawMessage `json:"rules" doc:"The rules as they were written, including white space; tabs are two spaces."`
}

// Warning is a likely mistake in the rules of a site.
type Warning struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// SiteSummary is a site in a list.
type SiteSummary struct {
	Name       string    `json:"name"`
	Version    uint64    `json:"version" doc:"Version of the rules, incremented with each change."`
	Changed    time.Time `json:"changed"`
	By         string    `json:"changed_by"`
	Hosts      []string  `json:"hosts" doc:"Hosts in the rules; empty: any host."`
	Rooms      []string  `json:"rooms" doc:"URLs of the rooms in the rules."`
	Connectors int       `json:"connectors" doc:"Number of connectors that reported in the last minute."`
	Behind     int       `json:"behind" doc:"Number of these that run older rules."`
}

// SiteList lists the sites of an organization.
type SiteList struct {
	Sites []SiteSummary `json:"sites"`
}

// SiteInput describes a new site.
type SiteInput struct {
	Name  string          `json:"name" need:"true" doc:"1 to 63 of a-z, 0-9 and -. It stays."`
	Rules json.RawMessage `json:"rules" need:"true" doc:"Rules document; connector/rules/FORMAT.md describes it."`
}

// SiteRulesInput replaces the rules of a site.
type SiteRulesInput struct {
	Rules json.RawMessage `json:"rules" need:"true" doc:"Rules document; connector/rules/FORMAT.md describes it."`
}

// SiteVersion is one version of a site's rules. Rules must be its last member.
type SiteVersion struct {
	Version uint64          `json:"version"`
	Changed time.Time       `json:"changed"`
	By      string          `json:"changed_by"`
	Rules   json.RawMessage `json:"rules" doc:"The rules as they were written, including white space."`
}

// SiteVersionSummary is one version of a site's rules in a list.
type SiteVersionSummary struct {
	Version uint64    `json:"version"`
	Changed time.Time `json:"changed"`
	By      string    `json:"changed_by"`
	Size    int       `json:"size" doc:"Size of the rules in bytes."`
}

// SiteHistory lists the versions of a site's rules.
type SiteHistory struct {
	Versions []SiteVersionSummary `json:"versions"`
}

// Connector is a connector process that reports.
type Connector struct {
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

// ConnectorList lists connectors that report.
type ConnectorList struct {
	Connectors []Connector `json:"connectors"`
}

// SiteCheckInput asks which rules decide about URLs.
type SiteCheckInput struct {
	URLs  []string        `json:"urls" need:"true" doc:"URLs as browsers show them, at most 100; fewer if there are more than 100 rules."`
	At    *time.Time      `json:"at" doc:"Time at which they are opened. Default: now."`
	Rules json.RawMessage `json:"rules" doc:"Rules to check instead of the site's."`
}

// Finding is the decision about one URL.
type Finding struct {
	URL      string   `json:"url"`
	Outcome  string   `json:"outcome" enum:"bypass,queue,closed,block"`
	Room     string   `json:"room" doc:"Name of the room in the rules; empty: none."`
	Rule     string   `json:"rule" doc:"Name of the deciding rule; empty: none."`
	Warnings []string `json:"warnings" doc:"Addresses that often lead to the same page but are not protected."`
}

// SiteCheck is the result of checking URLs.
type SiteCheck struct {
	Findings []Finding `json:"findings"`
}

// SiteKey is the key that verifies rules.
type SiteKey struct {
	Key string `json:"key" doc:"Key with which connectors verify the rules of all the organization's sites (C2SP signed note)."`
}
