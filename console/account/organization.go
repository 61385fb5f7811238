package account

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/internal/invalid"
)

var slugForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

const wantSlug = "must be 1 to 63 of a-z, 0-9 and -, with a letter or digit at both ends"

// Organizations manages the names, logos and settings of organizations.
type Organizations struct {
	store    *pgaccount.Organizations
	people   *pgaccount.People
	activity *recorder
	random   random
	now      func() time.Time
	log      *slog.Logger
	shown    cache[uuid.UUID, Organization] // names and versions of logos
	logos    sync.Map                       // Logo by version
}

// Create creates an organization. Only the server's administrator may do so.
// [Invitations.OwnerLink] gives it an owner. It returns [ErrExists] if the slug is taken.
func (orgs *Organizations) Create(ctx context.Context, by Actor, slug, name string) (Organization, error) {
	if by.Kind != Server {
		return Organization{}, ErrForbidden
	}
	var wrong invalid.List
	if !slugForm.MatchString(slug) {
		wrong.Add("slug", wantSlug)
	}
	name, ok := normalName(name)
	if !ok {
		wrong.Add("name", wantName)
	}
	if err := wrong.Err(); err != nil {
		return Organization{}, err
	}
	id, err := orgs.random.id()
	if err != nil {
		return Organization{}, err
	}
	o := Organization{ID: id, Slug: slug, Name: name, Created: orgs.now()}
	if err := orgs.store.Add(ctx, o); err != nil {
		return Organization{}, mapError(err)
	}
	orgs.shown.forget()
	by.Org = o.ID
	return o, orgs.activity.record(ctx, by, "organization.create", slug, map[string]any{"name": name})
}

// List returns the organizations that the actor may see, by slug: all for the server's
// administrator, otherwise the actor's own.
func (orgs *Organizations) List(ctx context.Context, by Actor) ([]Organization, error) {
	if by.Kind == Server {
		return orgs.store.List(ctx)
	}
	o, err := orgs.Get(ctx, by)
	if err != nil {
		return nil, err
	}
	return []Organization{o}, nil
}

// Get returns the actor's organization.
func (orgs *Organizations) Get(ctx context.Context, by Actor) (Organization, error) {
	if !by.May(Read) {
		return Organization{}, ErrForbidden
	}
	o, err := orgs.store.Get(ctx, by.Org)
	return o, mapError(err)
}

// BySlug returns the organization with that slug, or [ErrNotFound]. It checks no
// permissions: only callers that may act in any organization use it.
func (orgs *Organizations) BySlug(ctx context.Context, slug string) (Organization, error) {
	o, err := orgs.store.BySlug(ctx, slug)
	return o, mapError(err)
}

// Unnamed is the name of the first organization until its owner changes it.
const Unnamed = "My organization"

// PublicName returns the organization's name for visitors; empty for [Unnamed] and when the
// database cannot be read. It checks no permissions. Other nodes see a change within five seconds.
func (orgs *Organizations) PublicName(ctx context.Context, org uuid.UUID) string {
	if name := orgs.public(ctx, org).Name; name != Unnamed {
		return name
	}
	return ""
}

// PublicLogo returns the version of the organization's logo, or "". In other respects it works like
// [Organizations.PublicName].
func (orgs *Organizations) PublicLogo(ctx context.Context, org uuid.UUID) string {
	return orgs.public(ctx, org).Logo
}

// public returns the public part of an organization: its name and logo.
func (orgs *Organizations) public(ctx context.Context, org uuid.UUID) Organization {
	shown, err := orgs.shown.get(orgs.now, func() (map[uuid.UUID]Organization, error) {
		ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
		defer cancel()
		all, err := orgs.store.List(ctx)
		shown := make(map[uuid.UUID]Organization, len(all))
		for _, o := range all {
			shown[o.ID] = o
		}
		return shown, err
	})
	if err != nil {
		orgs.log.Warn("cannot read organizations", "err", err)
	}
	return shown[org]
}

// Logo is an organization's logo, shown by rooms without a logo of their own.
type Logo = pgaccount.Logo

// maxLogos is the number of logos that a node keeps in memory.
const maxLogos = 100

// Logo returns the organization's logo, or [ErrNotFound]. It checks no permissions, because public pages
// show the logo.
func (orgs *Organizations) Logo(ctx context.Context, org uuid.UUID) (Logo, error) {
	version := orgs.PublicLogo(ctx, org)
	if version == "" {
		return Logo{}, ErrNotFound
	}
	if found, ok := orgs.logos.Load(version); ok {
		logo, _ := found.(Logo)
		return logo, nil
	}
	logo, err := orgs.store.Logo(ctx, org)
	if err != nil {
		return Logo{}, mapError(err)
	}
	kept := 0
	orgs.logos.Range(func(any, any) bool { kept++; return kept < maxLogos })
	if kept >= maxLogos {
		orgs.logos.Clear()
	}
	orgs.logos.Store(versionOf(logo), logo)
	return logo, nil
}

// versionOf returns the version of a logo, or "" without an image.
func versionOf(logo Logo) string {
	if len(logo.Image) == 0 {
		return ""
	}
	sum := sha256.Sum256(append([]byte(logo.MediaType+"\n"), logo.Image...))
	return hex.EncodeToString(sum[:8])
}

// OrganizationChange lists changes to an organization. A nil field stays unchanged.
type OrganizationChange struct {
	Name          *string
	RequireFactor *bool // whether members need a second factor
	Logo          *Logo // validated by the caller; without an image: removes the logo
}

// Change changes the actor's organization. Only an owner with a second factor may
// require one of all members; otherwise it returns an [*invalid.Error].
func (orgs *Organizations) Change(ctx context.Context, by Actor, c OrganizationChange) (Organization, error) {
	if !by.May(Admin) {
		return Organization{}, ErrForbidden
	}
	o, err := orgs.store.Get(ctx, by.Org)
	if err != nil {
		return Organization{}, mapError(err)
	}
	detail := map[string]any{}
	if c.Name != nil {
		name, ok := normalName(*c.Name)
		if !ok {
			return Organization{}, invalid.Field("name", wantName)
		}
		o.Name, detail["name"] = name, name
	}
	if c.RequireFactor != nil {
		if err := orgs.mayRequire(ctx, by, *c.RequireFactor); err != nil {
			return Organization{}, err
		}
		o.RequireFactor, detail["require_second_factor"] = *c.RequireFactor, *c.RequireFactor
	}
	if err := orgs.store.Set(ctx, o.ID, o.Name, o.RequireFactor); err != nil {
		return Organization{}, mapError(err)
	}
	if c.Logo != nil {
		o.Logo = versionOf(*c.Logo)
		if err := orgs.store.SetLogo(ctx, o.ID, o.Logo, *c.Logo); err != nil {
			return Organization{}, mapError(err)
		}
		detail["logo"] = "taken away"
		if o.Logo != "" {
			detail["logo"] = "changed"
		}
	}
	orgs.shown.forget()
	return o, orgs.activity.record(ctx, by, "organization.change", o.Slug, detail)
}

// mayRequire keeps owners without a second factor from locking themselves out.
func (orgs *Organizations) mayRequire(ctx context.Context, by Actor, require bool) error {
	if !require || by.Kind != Person {
		return nil
	}
	p, err := orgs.people.Get(ctx, by.ID)
	if err != nil {
		return mapError(err)
	}
	if p.Factor == nil {
		return invalid.Field("require_second_factor", "needs a second factor on your own account first")
	}
	return nil
}
