package api

import (
	"encoding/json"
	"time"
)

// Site is a site as its organization sees it.
type Site struct {
	Name     string          `json:"name"`
	URL      string          `json:"url"` // where connectors get its rules
	Serial   uint64          `json:"serial"`
	Changed  time.Time       `json:"changed"`
	By       string          `json:"changed_by"`
	Hosts    []string        `json:"hosts"`
	Rooms    []string        `json:"rooms"`
	Warnings []Warning       `json:"warnings"`
	Rules    json.RawMessage `json:"rules"` // as they were written

	// Of those in a list.
	Connectors int `json:"connectors"` // heard of in the last minute
	Behind     int `json:"behind"`     // of these: go by older rules
}

// Warning is something about rules that may be a mistake.
type Warning struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// SiteVersion is a document that a site has or had.
type SiteVersion struct {
	Serial  uint64          `json:"serial"`
	Changed time.Time       `json:"changed"`
	By      string          `json:"changed_by"`
	Size    int             `json:"size"`
	Rules   json.RawMessage `json:"rules"`
}

// Connector is a process that goes by the rules of a site.
type Connector struct {
	Node      string    `json:"node"`
	Site      string    `json:"site"` // empty: its rules are of none
	Kind      string    `json:"kind"`
	Version   string    `json:"version"`
	Serial    uint64    `json:"serial"`
	Behind    bool      `json:"behind"`
	Connected bool      `json:"connected"`
	Seen      time.Time `json:"seen"`
}
