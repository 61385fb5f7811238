package room

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/zone"
	"github.com/proofline/proofline/room/branding"
	"github.com/proofline/proofline/room/setting"
)

// Settings is the part of a room's configuration that is not recorded in the transcript: its look, targets
// and limits.
type Settings struct {
	// Targets are the URLs that admitted visitors may be sent to, including all URLs below them. Visitors who arrived
	// without a URL are sent to the first.
	Targets []string `json:"targets,omitempty"`
	// SignedReturn sends visitors back only to URLs that a connector has signed, because it accepts a pass
	// there. Others are sent to the first target.
	SignedReturn bool `json:"signed_return,omitempty"`
	// Issuers are the pages on which issuers confirm visitors, as [setting.ParseIssuer] reads them.
	Issuers []string       `json:"issuers,omitempty"`
	Brand   branding.Brand `json:"brand,omitzero"`
	// MaxWaiting is the approximate limit of the line's length; 0: no limit. Visitors who are turned away get
	// no receipt.
	MaxWaiting uint32 `json:"max_waiting"`
	// JoinsPerMinute is the number of joins that each node takes a minute; 0: no limit.
	JoinsPerMinute uint32 `json:"joins_per_minute,omitempty"`
	// MinScore is the score of a bot tool in front, 0 to 100, below which a join is refused; 0: none is.
	MinScore uint32 `json:"min_score,omitempty"`
	// TimeZone is the event's time zone, such as "Europe/Vienna"; empty: UTC. Reports and pages without
	// scripts use it.
	TimeZone string `json:"time_zone,omitempty"`
	// Appeal is the mail address or https URL to which visitors can turn whose place was revoked; empty: none.
	Appeal string `json:"appeal,omitempty"`
}

// Published returns those settings that the room's pages show to everyone.
func (s Settings) Published() Settings {
	return Settings{Targets: s.Targets, Issuers: s.Issuers, Brand: s.Brand, TimeZone: s.TimeZone, Appeal: s.Appeal}
}

// SettingsChange is a change of the settings; nil members stay as they are.
type SettingsChange struct {
	Targets        *[]string       `json:"targets,omitempty"`
	SignedReturn   *bool           `json:"signed_return,omitempty"`
	Issuers        *[]string       `json:"issuers,omitempty"`
	Brand          *branding.Brand `json:"brand,omitempty"` // replaced as a whole
	MaxWaiting     *uint32         `json:"max_waiting,omitempty"`
	JoinsPerMinute *uint32         `json:"joins_per_minute,omitempty"`
	MinScore       *uint32         `json:"min_score,omitempty"`
	TimeZone       *string         `json:"time_zone,omitempty"`
	Appeal         *string         `json:"appeal,omitempty"`
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

// Problems lists what is invalid in the settings.
func (s Settings) Problems() invalid.List {
	brand := s.Brand
	s.Brand = branding.Brand{} // the brand lists its own problems
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

// Issuer returns the issuer of a method; false if its page is not known.
func (s *Settings) Issuer(method string) (setting.Issuer, bool) {
	for _, text := range s.Issuers {
		if i, ok := setting.ParseIssuer(text); ok && i.Method == method {
			return i, true
		}
	}
	return setting.Issuer{}, false
}

// Origins returns the origins of all targets and issuers without duplicates, such as "https://shop.example.com":
// those to which forms of the room's pages lead.
func (s *Settings) Origins() []string {
	var list []string
	for _, target := range s.Targets {
		if u, ok := setting.ParseTarget(target); ok {
			list = append(list, u.Scheme+"://"+u.Host)
		}
	}
	for _, text := range s.Issuers {
		if i, ok := setting.ParseIssuer(text); ok {
			list = append(list, i.URL.Scheme+"://"+i.URL.Host)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
