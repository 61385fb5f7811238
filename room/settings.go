package room

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/zone"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/setting"
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
	from, to := reflect.ValueOf(c), reflect.ValueOf(&s).Elem()
	for field, value := range from.Fields() {
		if !value.IsNil() {
			to.FieldByName(field.Name).Set(value.Elem())
		}
	}
	return s
}

// problems lists what is invalid in the settings.
func (s Settings) problems() invalid.List {
	brand := s.Brand
	s.Brand = Brand{} // it lists its own problems
	return append(setting.CheckMembers(s), brand.Problems()...)
}

// Target returns the wanted URL if it is one of the targets or below one, or the first target when none is
// wanted. It returns false when there are no targets, or they do not allow the wanted URL. [Room.Target] also
// checks its signature.
func (s *Settings) Target(wanted string) (*url.URL, bool) {
	if wanted == "" {
		if len(s.Targets) == 0 {
			return nil, false
		}
		return setting.ParseTarget(s.Targets[0])
	}
	u, ok := setting.ParseTarget(wanted)
	return u, ok && slices.ContainsFunc(s.Targets, func(target string) bool {
		t, ok := setting.ParseTarget(target)
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
		if u, ok := setting.ParseTarget(target); ok {
			list = append(list, u.Scheme+"://"+u.Host)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
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

// firstSettings stores the settings of a new room.
func (r *Room) firstSettings(ctx context.Context, s Settings) error {
	if reflect.ValueOf(s).IsZero() {
		return nil
	}
	s.Brand = s.Brand.stored()
	return r.mergeSettings(ctx, s)
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
