package account

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/internal/invalid"
)

var slugForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

const wantSlug = "must be 1 to 63 of a-z, 0-9 and -, with a letter or digit at both ends"

// CreateOrganization creates an organization. Only the server's administrator may do so.
// [Accounts.OwnerLink] gives it an owner. It returns [ErrExists] if the slug is taken.
func (a *Accounts) CreateOrganization(ctx context.Context, by Actor, slug, name string) (Organization, error) {
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
	id, err := a.newID()
	if err != nil {
		return Organization{}, err
	}
	o := Organization{ID: id, Slug: slug, Name: name, Created: a.Now()}
	if err := a.Store.AddOrganization(ctx, o); err != nil {
		return Organization{}, mapError(err)
	}
	a.shown.forget()
	by.Org = o.ID
	return o, a.record(ctx, by, "organization.create", slug, map[string]any{"name": name})
}

// Organizations returns the organizations that the actor may see, by slug: all for the server's
// administrator, otherwise the actor's own.
func (a *Accounts) Organizations(ctx context.Context, by Actor) ([]Organization, error) {
	if by.Kind == Server {
		return a.Store.Organizations(ctx)
	}
	o, err := a.Organization(ctx, by)
	if err != nil {
		return nil, err
	}
	return []Organization{o}, nil
}

// Organization returns the actor's organization.
func (a *Accounts) Organization(ctx context.Context, by Actor) (Organization, error) {
	if !by.May(Read) {
		return Organization{}, ErrForbidden
	}
	o, err := a.Store.Organization(ctx, by.Org)
	return o, mapError(err)
}

// OrganizationBySlug returns the organization with that slug, or [ErrNotFound]. It checks no
// permissions: only callers that may act in any organization use it.
func (a *Accounts) OrganizationBySlug(ctx context.Context, slug string) (Organization, error) {
	o, err := a.Store.OrganizationBySlug(ctx, slug)
	return o, mapError(err)
}

// Unnamed is the name of the first organization until its owner changes it.
const Unnamed = "My organization"

// PublicName returns the organization's name for visitors; empty for [Unnamed] and when the
// database cannot be read. It checks no permissions. Other nodes see a change within five seconds.
func (a *Accounts) PublicName(ctx context.Context, org uuid.UUID) string {
	if name := a.public(ctx, org).Name; name != Unnamed {
		return name
	}
	return ""
}

// PublicLogo returns the version of the organization's logo, or "". Otherwise it is like
// [Accounts.PublicName].
func (a *Accounts) PublicLogo(ctx context.Context, org uuid.UUID) string {
	return a.public(ctx, org).Logo
}

// public returns the public part of an organization: its name and logo.
func (a *Accounts) public(ctx context.Context, org uuid.UUID) Organization {
	shown, err := a.shown.get(a.Now, func() (map[uuid.UUID]Organization, error) {
		ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
		defer cancel()
		all, err := a.Store.Organizations(ctx)
		shown := make(map[uuid.UUID]Organization, len(all))
		for _, o := range all {
			shown[o.ID] = o
		}
		return shown, err
	})
	if err != nil {
		a.Log.Warn("cannot read organizations", "err", err)
	}
	return shown[org]
}

// Logo is an organization's logo, shown by rooms without a logo of their own.
type Logo = pgaccount.Logo

// maxLogos is the number of logos that a node keeps in memory.
const maxLogos = 100

// Logo returns the organization's logo, or [ErrNotFound]. It checks no permissions, because public pages
// show the logo.
func (a *Accounts) Logo(ctx context.Context, org uuid.UUID) (Logo, error) {
	version := a.PublicLogo(ctx, org)
	if version == "" {
		return Logo{}, ErrNotFound
	}
	if found, ok := a.logos.Load(version); ok {
		logo, _ := found.(Logo)
		return logo, nil
	}
	logo, err := a.Store.Logo(ctx, org)
	if err != nil {
		return Logo{}, mapError(err)
	}
	kept := 0
	a.logos.Range(func(any, any) bool { kept++; return kept < maxLogos })
	if kept >= maxLogos {
		a.logos.Clear()
	}
	a.logos.Store(versionOf(logo), logo)
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

// ChangeOrganization changes the actor's organization. Only an owner with a second factor may
// require one of all members; otherwise it returns an [*invalid.Error].
func (a *Accounts) ChangeOrganization(ctx context.Context, by Actor, c OrganizationChange) (Organization, error) {
	if !by.May(Admin) {
		return Organization{}, ErrForbidden
	}
	o, err := a.Store.Organization(ctx, by.Org)
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
		if err := a.mayRequire(ctx, by, *c.RequireFactor); err != nil {
			return Organization{}, err
		}
		o.RequireFactor, detail["require_second_factor"] = *c.RequireFactor, *c.RequireFactor
	}
	if err := a.Store.SetOrganization(ctx, o.ID, o.Name, o.RequireFactor); err != nil {
		return Organization{}, mapError(err)
	}
	if c.Logo != nil {
		o.Logo = versionOf(*c.Logo)
		if err := a.Store.SetLogo(ctx, o.ID, o.Logo, *c.Logo); err != nil {
			return Organization{}, mapError(err)
		}
		detail["logo"] = "taken away"
		if o.Logo != "" {
			detail["logo"] = "changed"
		}
	}
	a.shown.forget()
	return o, a.record(ctx, by, "organization.change", o.Slug, detail)
}

// mayRequire keeps owners without a second factor from locking themselves out.
func (a *Accounts) mayRequire(ctx context.Context, by Actor, require bool) error {
	if !require || by.Kind != Person {
		return nil
	}
	p, err := a.Store.Person(ctx, by.ID)
	if err != nil {
		return mapError(err)
	}
	if p.Factor == nil {
		return invalid.Field("require_second_factor", "needs one of your own first: set it up in your account")
	}
	return nil
}

// Member is a person in an organization.
type Member = pgaccount.Member

// Members returns the members of the actor's organization, owners first.
func (a *Accounts) Members(ctx context.Context, by Actor) ([]Member, error) {
	if !by.May(Read) {
		return nil, ErrForbidden
	}
	return a.Store.Members(ctx, by.Org)
}

// SetRole changes the role of a member of the actor's organization. It returns [ErrNotFound] or
// [ErrLastOwner].
func (a *Accounts) SetRole(ctx context.Context, by Actor, person uuid.UUID, role Role) error {
	if !by.May(Admin) {
		return ErrForbidden
	}
	if _, err := ParseRole(string(role)); err != nil {
		return invalid.Field("role", "must be owner, operator or viewer")
	}
	m, err := a.Store.Member(ctx, by.Org, person)
	if err != nil {
		return mapError(err)
	}
	if err := a.Store.SetRole(ctx, by.Org, person, string(role)); err != nil {
		return mapError(err)
	}
	return a.record(ctx, by, "member.role", m.Email, map[string]any{"from": m.Role, "to": string(role)})
}

// RemoveMember removes a person from the actor's organization. Any member may leave. Tokens that
// the person made stay valid. It returns [ErrNotFound] or [ErrLastOwner].
func (a *Accounts) RemoveMember(ctx context.Context, by Actor, person uuid.UUID) error {
	if leaves := by.Kind == Person && by.ID == person; !leaves && !by.May(Admin) {
		return ErrForbidden
	}
	m, err := a.Store.Member(ctx, by.Org, person)
	if err != nil {
		return mapError(err)
	}
	if err := a.Store.RemoveMember(ctx, by.Org, person); err != nil {
		return mapError(err)
	}
	return a.record(ctx, by, "member.remove", m.Email, nil)
}
