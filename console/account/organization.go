package account

import (
	"context"
	"regexp"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account/pgaccount"
)

var slugForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

const wantSlug = "must be 1 to 63 of a-z, 0-9 and -, with a letter or digit at both ends"

// CreateOrganization creates an organization. Only the server's administrator may do so.
// [Accounts.OwnerLink] gives it an owner. It returns [ErrExists] if the slug is taken.
func (a *Accounts) CreateOrganization(ctx context.Context, by Actor, slug, name string) (Organization, error) {
	if by.Kind != Server {
		return Organization{}, ErrForbidden
	}
	var wrong complaints
	if !slugForm.MatchString(slug) {
		wrong.add("slug", wantSlug)
	}
	name, ok := normalName(name)
	if !ok {
		wrong.add("name", wantName)
	}
	if err := wrong.err(); err != nil {
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
	a.names.forget()
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
	names, err := a.names.get(a.Now, func() (map[uuid.UUID]string, error) {
		ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
		defer cancel()
		all, err := a.Store.Organizations(ctx)
		names := make(map[uuid.UUID]string, len(all))
		for _, o := range all {
			names[o.ID] = o.Name
		}
		return names, err
	})
	if err != nil {
		a.Log.Warn("cannot read the names of organizations", "err", err)
	}
	if names[org] == Unnamed {
		return ""
	}
	return names[org]
}

// OrganizationChange lists changes to an organization. A nil field stays unchanged.
type OrganizationChange struct {
	Name          *string
	RequireFactor *bool // whether members need a second factor
}

// ChangeOrganization changes the actor's organization. Only an owner with a second factor may
// require one of all members; otherwise it returns an *[InvalidError].
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
			return Organization{}, invalid("name", wantName)
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
	a.names.forget()
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
		return invalid("require_second_factor", "needs one of your own first: set it up in your account")
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
		return invalid("role", "must be owner, operator or viewer")
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
