package site

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/site/pgsite"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
)

// Limits for an organization.
const (
	MaxSites    = 100  // sites, not counting deleted ones
	maxNames    = 1000 // site names, including those of deleted sites
	MaxVersions = 100  // versions of a site's rules that are kept
)

// errTooManyNames is returned when an organization has used all names. Names of deleted sites count.
var errTooManyNames = &account.LimitError{
	Max: maxNames, Objects: "names of sites, including deleted ones", Advice: "use the name of a deleted site again",
}

// Sealer seals secrets for the database, such as [keys.MasterKey].
type Sealer interface {
	Seal(purpose string, secret []byte) []byte
	Open(purpose string, sealed []byte) ([]byte, error)
}

// ActivityLog records an operation in the activity log, before and after it runs.
// [activity.Log] implements it.
type ActivityLog interface {
	Do(ctx context.Context, by account.Actor, verb, object string, detail map[string]any, do func() error) error
}

// Records reads the rooms of the database, including those that have ended. Error:
// [pgroom.ErrNotFound].
type Records interface {
	Get(ctx context.Context, slug string) (pgroom.Room, error)
}

// Options configures [New]. Every field is required unless its comment says otherwise.
type Options struct {
	Store    *pgsite.Store
	Rooms    *room.Rooms
	Records  Records
	Sealer   Sealer
	Activity ActivityLog
	// Slug returns the slug of an organization, which becomes part of its key's name.
	Slug func(ctx context.Context, org uuid.UUID) (string, error)
	// HostOwner returns the organization that has proved that it owns a custom host; nil: the server
	// has no custom hosts.
	HostOwner func(ctx context.Context, host string) (org uuid.UUID, ok bool, err error)
	Rand      io.Reader // nil: crypto/rand.Reader
}

// Sites manages the sites of all organizations of a server. Safe for concurrent use; any number of
// nodes can share a database.
type Sites struct {
	Options

	mu    sync.Mutex // guards the fields below
	keys  map[uuid.UUID]key
	notes notes
}

// New returns the sites of a server.
func New(o Options) *Sites {
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	return &Sites{Options: o, keys: map[uuid.UUID]key{}, notes: notes{}}
}

// Site is a site with one version of its rules.
type Site struct {
	Org     uuid.UUID
	Name    string // name in the form of a room's slug
	Rules   []byte // JSON as its owner wrote it, ending in one newline
	Version uint64 // version number of the rules, from 1
	Changed time.Time
	By      string // name of the actor that made the change
	Hosts   []string
	Rooms   []string // distinct URLs
}

func newSite(org uuid.UUID, s pgsite.Site) Site {
	return Site{org, s.Name, []byte(s.Rules), s.Version, s.Changed, s.By, s.Hosts, s.Rooms}
}

// Summary is a site in a list, without its rules.
type Summary struct {
	Site
	Connectors int // number of connectors that reported in the last minute
	Behind     int // how many of Connectors run older rules
}

// List returns the sites of the actor's organization, sorted by name, without their rules.
func (s *Sites) List(ctx context.Context, by account.Actor) ([]Summary, error) {
	if !by.May(account.Read) {
		return nil, account.ErrForbidden
	}
	stored, err := s.Store.Sites(ctx, by.Org, connectedFor)
	if err != nil {
		return nil, err
	}
	list := make([]Summary, len(stored))
	for i, one := range stored {
		list[i] = Summary{newSite(by.Org, one.Site), one.Connectors, one.Behind}
		list[i].Rules = nil
	}
	return list, nil
}

// Site returns one site.
func (s *Sites) Site(ctx context.Context, by account.Actor, name string) (Site, error) {
	if !by.May(account.Read) {
		return Site{}, account.ErrForbidden
	}
	return s.site(ctx, by.Org, name)
}

func (s *Sites) site(ctx context.Context, org uuid.UUID, name string) (Site, error) {
	if !nameForm.MatchString(name) {
		return Site{}, account.ErrNotFound
	}
	return known(org)(s.Store.Site(ctx, org, name))
}

// known returns a function that maps pgsite's result and errors to those of this package.
func known(org uuid.UUID) func(pgsite.Site, error) (Site, error) {
	return func(stored pgsite.Site, err error) (Site, error) {
		for from, to := range map[error]error{
			pgsite.ErrNotFound:     account.ErrNotFound,
			pgsite.ErrExists:       account.ErrExists,
			pgsite.ErrTooManySites: &account.LimitError{Max: MaxSites, Objects: "sites"},
			pgsite.ErrTooManyNames: errTooManyNames,
			pgsite.ErrChanged:      control.ErrChanged,
		} {
			if errors.Is(err, from) {
				return Site{}, to
			}
		}
		return newSite(org, stored), err
	}
}

// object returns the activity-log object name of a site.
func object(name string) string { return "site/" + name }

// Create adds a site to the actor's organization.
func (s *Sites) Create(ctx context.Context, by account.Actor, name string, document []byte) (made Site, err error) {
	if !by.May(account.Operate) {
		return Site{}, account.ErrForbidden
	}
	if !nameForm.MatchString(name) {
		return Site{}, invalid.Field("name", wantName)
	}
	err = s.Activity.Do(ctx, by, "site.create", object(name), fingerprint(document), func() error {
		change, err := s.change(ctx, by, name, document)
		if err != nil {
			return err
		}
		if _, err := s.key(ctx, by.Org); err != nil {
			return err
		}
		made, err = known(by.Org)(s.Store.Add(ctx, by.Org, change, MaxSites, maxNames))
		return err
	})
	return made, err
}

// change validates a rules document and returns the row to store.
func (s *Sites) change(ctx context.Context, by account.Actor, name string, document []byte) (pgsite.Change, error) {
	read, err := s.read(ctx, by.Org, document)
	if err != nil {
		return pgsite.Change{}, err
	}
	return pgsite.Change{Name: name, Rules: read.text, Hosts: read.hosts(), Rooms: read.rooms(), By: by.Name}, nil
}

// Update replaces the rules of a site. A version other than 0 must be that of the current rules,
// else Update returns [control.ErrChanged]. If the document equals the current rules, nothing changes.
func (s *Sites) Update(ctx context.Context, by account.Actor, name string, version uint64,
	document []byte) (Site, error) {
	before, err := s.changeable(ctx, by, name, version)
	if err != nil {
		return Site{}, err
	}
	if normal(document) == string(before.Rules) {
		return before, nil
	}
	detail := fingerprint(document)
	detail["version"] = before.Version
	return s.update(ctx, by, "site.update", name, version, detail, document)
}

// changeable returns a site after checking that the actor may change it and that version, unless 0,
// is current.
func (s *Sites) changeable(ctx context.Context, by account.Actor, name string, version uint64) (Site, error) {
	if !by.May(account.Operate) {
		return Site{}, account.ErrForbidden
	}
	before, err := s.site(ctx, by.Org, name)
	if err == nil && version != 0 && version != before.Version {
		err = control.ErrChanged
	}
	return before, err
}

func (s *Sites) update(ctx context.Context, by account.Actor, verb, name string, version uint64, detail map[string]any,
	document []byte) (after Site, err error) {
	err = s.Activity.Do(ctx, by, verb, object(name), detail, func() error {
		change, err := s.change(ctx, by, name, document)
		if err != nil {
			return err
		}
		after, err = known(by.Org)(s.Store.Change(ctx, by.Org, version, change, MaxVersions))
		return err
	})
	return after, err
}

// Delete deletes a site. Connectors keep the rules they have.
func (s *Sites) Delete(ctx context.Context, by account.Actor, name string) error {
	before, err := s.changeable(ctx, by, name, 0)
	if err != nil {
		return err
	}
	return s.Activity.Do(ctx, by, "site.delete", object(name), map[string]any{"version": before.Version}, func() error {
		_, err := known(by.Org)(pgsite.Site{}, s.Store.Delete(ctx, by.Org, name))
		return err
	})
}

// Version describes one document in a site's history.
type Version struct {
	Number  uint64
	Changed time.Time
	By      string
	Size    int // size of the document, in bytes
}

// History returns the current and former documents of a site, newest first, at most [MaxVersions].
func (s *Sites) History(ctx context.Context, by account.Actor, name string) ([]Version, error) {
	if _, err := s.Site(ctx, by, name); err != nil {
		return nil, err
	}
	stored, err := s.Store.Versions(ctx, by.Org, name)
	if err != nil {
		return nil, err
	}
	list := make([]Version, len(stored))
	for i, v := range stored {
		list[i] = Version(v)
	}
	return list, nil
}

// Version returns a site with the rules of the given version.
func (s *Sites) Version(ctx context.Context, by account.Actor, name string, version uint64) (Site, error) {
	if _, err := s.Site(ctx, by, name); err != nil {
		return Site{}, err
	}
	return known(by.Org)(s.Store.Version(ctx, by.Org, name, version))
}

// Restore makes the rules of an earlier version current again, under a new version. Seen is the version
// of the rules that the actor has read, or 0, as in [Sites.Update].
func (s *Sites) Restore(ctx context.Context, by account.Actor, name string, seen, version uint64) (Site, error) {
	before, err := s.changeable(ctx, by, name, seen)
	if err != nil {
		return Site{}, err
	}
	former, err := s.Version(ctx, by, name, version)
	if err != nil || string(former.Rules) == string(before.Rules) {
		return before, err
	}
	detail := map[string]any{"version": before.Version, "restores": version}
	return s.update(ctx, by, "site.restore", name, seen, detail, former.Rules)
}
