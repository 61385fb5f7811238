package room

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/zone"
	"github.com/proofline/proofline/room/pgroom"
)

// Limits of the settings.
const (
	maxTargets = 20
	maxTarget  = 2_000 // characters
)

// Settings is the part of a room's configuration that is not recorded in the transcript: its look, targets
// and limits.
type Settings struct {
	// Targets are the URLs that admitted visitors may be sent to, including all URLs below them. Visitors who
	// came without a URL are sent to the first.
	Targets []string `json:"targets,omitempty"`
	// SignedReturn sends visitors back only to URLs that a connector has signed, because it accepts a pass
	// there. Others are sent to the first target.
	SignedReturn bool  `json:"signed_return,omitempty"`
	Brand        Brand `json:"brand,omitzero"`
	// MaxWaiting is the approximate limit of the line's length; 0: no limit. Visitors who are turned away get
	// no receipt.
	MaxWaiting uint32 `json:"max_waiting"`
	// TimeZone is the event's time zone, such as "Europe/Vienna"; empty: UTC. Reports and pages without
	// scripts use it.
	TimeZone string `json:"time_zone,omitempty"`
}

// SettingsChange is a change of the settings; nil members stay as they are.
type SettingsChange struct {
	Targets      *[]string `json:"targets,omitempty"`
	SignedReturn *bool     `json:"signed_return,omitempty"`
	Brand        *Brand    `json:"brand,omitempty"` // replaced as a whole
	MaxWaiting   *uint32   `json:"max_waiting,omitempty"`
	TimeZone     *string   `json:"time_zone,omitempty"`
}

// on returns the settings after the change.
func (c SettingsChange) on(s Settings) Settings {
	if c.Targets != nil {
		s.Targets = *c.Targets
	}
	if c.SignedReturn != nil {
		s.SignedReturn = *c.SignedReturn
	}
	if c.Brand != nil {
		s.Brand = *c.Brand
	}
	if c.MaxWaiting != nil {
		s.MaxWaiting = *c.MaxWaiting
	}
	if c.TimeZone != nil {
		s.TimeZone = *c.TimeZone
	}
	return s
}

// asChange returns the change that turns empty settings into s.
func (s Settings) asChange() SettingsChange {
	return SettingsChange{&s.Targets, &s.SignedReturn, &s.Brand, &s.MaxWaiting, &s.TimeZone}
}

const (
	wantTargets = "must be a list of URLs"
	wantFlag    = "must be true or false"
	wantZone    = `must be a name of the IANA time zone database, such as "Europe/Vienna"`
	wantTarget  = "must be a URL of https, or of http on localhost or 127.0.0.1, with a plain host name in lower case, " +
		"without user, fragment or dot segments, at most 2000 characters"
)

// problems lists what is invalid in the settings.
func (s Settings) problems() invalid.List {
	var list invalid.List
	if len(s.Targets) > maxTargets {
		list.Add("targets", fmt.Sprintf("must be at most %d", maxTargets))
	}
	for i, target := range s.Targets {
		if _, ok := parseTarget(target); !ok {
			list.Add(fmt.Sprintf("targets[%d]", i), wantTarget)
		}
	}
	if _, err := zone.Parse(s.TimeZone); err != nil {
		list.Add("time_zone", wantZone)
	}
	return append(list, s.Brand.Problems()...)
}

// hostForm matches the hosts that a Content-Security-Policy may contain: a name or an IPv4 address, with or
// without a port. International names are written in Punycode.
var hostForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$`)

// loopback matches the hosts that browsers treat as secure without TLS.
var loopback = regexp.MustCompile(`^(localhost|127\.[0-9]+\.[0-9]+\.[0-9]+)$`)

// parseTarget parses a URL that visitors may be sent to.
func parseTarget(text string) (*url.URL, bool) {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxTarget || strings.ContainsAny(text, "#\\") || u.User != nil ||
		!hostForm.MatchString(u.Host) {
		return nil, false
	}
	safe := u.Scheme == "https" || u.Scheme == "http" && loopback.MatchString(u.Hostname())
	return u, safe && isPlainPath(u)
}

// isPlainPath reports whether all programs read the same folders from a path: it has no dot segments and no
// encoded separators.
func isPlainPath(u *url.URL) bool {
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	escaped := strings.ToLower(u.EscapedPath())
	return !strings.Contains(escaped, "%2f") && !strings.Contains(escaped, "%5c")
}

// Target returns the wanted URL if it is one of the targets or below one, or the first target when none is
// wanted. It returns false when there are no targets, or they do not allow the wanted URL. [Room.Target] also
// checks its signature.
func (s *Settings) Target(wanted string) (*url.URL, bool) {
	if wanted == "" {
		if len(s.Targets) == 0 {
			return nil, false
		}
		return parseTarget(s.Targets[0])
	}
	u, ok := parseTarget(wanted)
	return u, ok && slices.ContainsFunc(s.Targets, func(target string) bool {
		t, ok := parseTarget(target)
		return ok && isBelow(u, t)
	})
}

// isBelow reports whether a URL has the origin and path of a target, or a path below it.
func isBelow(u, target *url.URL) bool {
	if u.Scheme != target.Scheme || u.Host != target.Host {
		return false
	}
	path, folder := u.EscapedPath(), strings.TrimSuffix(target.EscapedPath(), "/")
	return path == target.EscapedPath() || path == "" && folder == "" || strings.HasPrefix(path, folder+"/")
}

// Zone returns the event's time zone.
func (s *Settings) Zone() *time.Location {
	found, err := zone.Parse(s.TimeZone)
	if err != nil { // it was valid when it was stored
		return time.UTC
	}
	return found
}

// Origins returns the origins of all targets without duplicates, such as "https://shop.example.com".
func (s *Settings) Origins() []string {
	var list []string
	for _, target := range s.Targets {
		if u, ok := parseTarget(target); ok {
			list = append(list, u.Scheme+"://"+u.Host)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// settings parses the settings among a room's members.
func (d *fields) settings() (c SettingsChange) {
	if d.has("targets") {
		c.Targets = new([]string)
		read(d, "targets", c.Targets, wantTargets)
	}
	if d.has("signed_return") {
		c.SignedReturn = new(bool)
		read(d, "signed_return", c.SignedReturn, wantFlag)
	}
	if d.has("brand") {
		c.Brand = d.brand()
	}
	if d.has("max_waiting") {
		c.MaxWaiting = new(uint32)
		read(d, "max_waiting", c.MaxWaiting, wantCount)
	}
	if d.has("time_zone") {
		c.TimeZone = new(string)
		read(d, "time_zone", c.TimeZone, wantZone)
	}
	return c
}

// storedSettings are the settings as read from the database.
type storedSettings struct {
	Settings
	queueIt storedQueueIt
	version int64
}

// Settings returns the room's settings, which are immutable: a change creates new ones with a higher version.
func (r *Room) Settings() (settings *Settings, version int64) {
	s := r.settings.Load()
	return &s.Settings, s.version
}

// changeSettings stores a change and applies the result.
func (r *Room) changeSettings(ctx context.Context, c SettingsChange) error {
	if c.Brand != nil {
		brand := c.Brand.stored()
		c.Brand = &brand
	}
	return r.mergeSettings(ctx, c)
}

// mergeSettings stores members of the settings and applies the result.
func (r *Room) mergeSettings(ctx context.Context, members any) error {
	change, err := json.Marshal(members)
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	stored, err := r.texts.MergeSettings(ctx, r.ID, change)
	if err != nil {
		return err
	}
	return r.takeSettings(stored)
}

// readSettings reads the settings if version is newer than the cached one.
func (r *Room) readSettings(ctx context.Context, version int64) error {
	if version <= r.settings.Load().version {
		return nil
	}
	stored, err := r.texts.Settings(ctx, r.ID)
	if err != nil {
		return err
	}
	return r.takeSettings(stored)
}

// takeSettings applies stored settings, unless newer ones are known.
func (r *Room) takeSettings(stored pgroom.Settings) error {
	next := &storedSettings{version: stored.Version}
	if err := errors.Join(json.Unmarshal(stored.JSON, &next.Settings),
		json.Unmarshal(stored.JSON, &next.queueIt)); err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	for {
		known := r.settings.Load()
		if known.version >= next.version || r.settings.CompareAndSwap(known, next) {
			return nil
		}
	}
}
