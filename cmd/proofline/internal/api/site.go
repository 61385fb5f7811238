package api

import (
	"encoding/json"
	"time"
)

// Site is a site in the management API.
type Site struct {
	Name     string          `json:"name"`
	URL      string          `json:"url"`     // of the rules, for connectors
	Version  uint64          `json:"version"` // version of the rules
	Changed  time.Time       `json:"changed"`
	By       string          `json:"changed_by"`
	Hosts    []string        `json:"hosts"`
	Rooms    []string        `json:"rooms"`
	Warnings []Warning       `json:"warnings"`
	Rules    json.RawMessage `json:"rules"` // as their author wrote them

	// Only in lists of sites.
	Connectors int `json:"connectors"` // that reported within the last minute
	Behind     int `json:"behind"`     // of Connectors: those with older rules
}

// Warning is a possible mistake in rules.
type Warning struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// SiteVersion is a current or former version of a site's rules.
type SiteVersion struct {
	Version uint64          `json:"version"`
	Changed time.Time       `json:"changed"`
	By      string          `json:"changed_by"`
	Size    int             `json:"size"`
	Rules   json.RawMessage `json:"rules"`
}

// Connector is a connector process that reported to the server.
type Connector struct {
	Node         string    `json:"node"`
	Site         string    `json:"site"` // empty: its rules belong to no site of this server
	Kind         string    `json:"kind"`
	Version      string    `json:"version"`
	RulesVersion uint64    `json:"rules_version"`
	Behind       bool      `json:"behind"`
	Connected    bool      `json:"connected"`
	Seen         time.Time `json:"seen"`
}
