package account

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/internal/invalid"
)

// Lifetimes of links.
const (
	SetupLife      = 24 * time.Hour // of links for the first owner, and of owner links
	InvitationLife = 72 * time.Hour
)

// maxInvitations is the number of open invitations that an organization may have.
const maxInvitations = 100

// Invitation is an open invitation.
type Invitation = pgaccount.Invitation

// Invitations makes links for joining organizations, and adds the people who use them.
type Invitations struct {
	store         *pgaccount.Invitations
	organizations *pgaccount.Organizations
	members       *pgaccount.Members
	people        *pgaccount.People
	passwords     *hasher
	sessions      *Sessions
	starter       *starter
	mailer        Mailer // nil: invitations are not mailed
	limits        *limiter
	activity      *recorder
	random        random
	onSetup       func() // called when the first owner has been created; may be nil
	url           string
	now           func() time.Time
	log           *slog.Logger
}

// SetupLink returns a one-time link that creates the first owner; empty if any organization has an
// owner. Earlier links stay valid until one is used.
func (is *Invitations) SetupLink(ctx context.Context) (string, error) {
	owned, err := is.members.HasOwner(ctx)
	if err != nil || owned {
		return "", err
	}
	v := Invitation{Org: MainOrg, Role: string(Owner), Setup: true, InvitedBy: "first start"}
	return is.link(ctx, v, "/console/setup", SetupLife)
}

// HasOwner reports whether some organization has an owner.
func (is *Invitations) HasOwner(ctx context.Context) (bool, error) { return is.members.HasOwner(ctx) }

// OwnerLink returns a one-time link that creates an owner of an organization. With an address, only
// that person can use it: a person with an account gets a new password and loses the second factor.
// Only the server's administrator may create one.
func (is *Invitations) OwnerLink(ctx context.Context, by Actor, slug, email string) (string, error) {
	if by.Kind != Server {
		return "", ErrForbidden
	}
	if email != "" {
		normal, ok := NormalEmail(email)
		if !ok {
			return "", invalid.Field("email", wantEmail)
		}
		email = normal
	}
	o, err := is.organizations.BySlug(ctx, slug)
	if err != nil {
		return "", mapError(err)
	}
	v := Invitation{Org: o.ID, Role: string(Owner), Email: email, Recovers: email != "", InvitedBy: by.Name}
	link, err := is.link(ctx, v, "/console/invitation", SetupLife)
	if err != nil {
		return "", err
	}
	by.Org = o.ID
	return link, is.activity.record(ctx, by, "owner.link", email, nil)
}

// Invite creates a one-time link for joining the actor's organization, and mails it if mail is
// configured; mailed reports whether it was sent. It replaces earlier invitations to the same
// address. It returns a *[RateError] if too many were mailed recently.
func (is *Invitations) Invite(ctx context.Context, by Actor, email string, role Role) (link string, mailed bool,
	err error) {
	if !by.May(Admin) {
		return "", false, ErrForbidden
	}
	var wrong invalid.List
	email, ok := NormalEmail(email)
	if !ok {
		wrong.Add("email", wantEmail)
	}
	if _, err := ParseRole(string(role)); err != nil {
		wrong.Add("role", "must be owner, operator or viewer")
	}
	if err := wrong.Err(); err != nil {
		return "", false, err
	}
	if n, err := is.store.Count(ctx, by.Org, is.now()); err != nil {
		return "", false, err
	} else if n >= maxInvitations {
		return "", false, &LimitError{Max: maxInvitations, Objects: "open invitations"}
	}
	o, err := is.organizations.Get(ctx, by.Org)
	if err != nil {
		return "", false, mapError(err)
	}
	if is.mailer != nil {
		if _, err := is.limits.attempt(ctx, mailLimit, by.Org.String()); err != nil {
			return "", false, err
		}
	}
	link, err = is.link(ctx, Invitation{Org: o.ID, Role: string(role), Email: email, InvitedBy: by.Name},
		"/console/invitation", InvitationLife)
	if err != nil {
		return "", false, err
	}
	if err := is.activity.record(ctx, by, "member.invite", email, map[string]any{"role": string(role)}); err != nil {
		return "", false, err
	}
	return link, is.mail(ctx, email, o, role, link), nil
}

// mail sends an invitation and reports whether that worked. The owner gets the link either way.
func (is *Invitations) mail(ctx context.Context, email string, o Organization, role Role, link string) bool {
	if is.mailer == nil {
		return false
	}
	text := fmt.Sprintf("You are invited to %s on Proofline, as %s.\n\n"+
		"Open this link within %d hours to accept. It works once.\n\n%s\n",
		o.Name, role, int(InvitationLife.Hours()), link)
	if err := is.mailer.Send(ctx, email, "Invitation to "+o.Name, text); err != nil {
		is.log.Warn("cannot mail invitation", "err", err)
		return false
	}
	return true
}

// link stores an invitation and returns its URL.
func (is *Invitations) link(ctx context.Context, v Invitation, path string, life time.Duration) (string, error) {
	id, err := is.random.id()
	if err != nil {
		return "", err
	}
	token, hash, err := is.random.secret("")
	if err != nil {
		return "", err
	}
	v.ID, v.Created = id, is.now()
	v.Expires = v.Created.Add(life)
	return is.url + path + "#t=" + token, is.store.Add(ctx, v, hash)
}

// List returns the open invitations of the actor's organization, newest first.
func (is *Invitations) List(ctx context.Context, by Actor) ([]Invitation, error) {
	if !by.May(Admin) {
		return nil, ErrForbidden
	}
	return is.store.List(ctx, by.Org, is.now())
}

// Revoke revokes an invitation, or returns [ErrNotFound].
func (is *Invitations) Revoke(ctx context.Context, by Actor, id uuid.UUID) error {
	if !by.May(Admin) {
		return ErrForbidden
	}
	email, err := is.store.Remove(ctx, by.Org, id)
	if err != nil {
		return mapError(err)
	}
	return is.activity.record(ctx, by, "member.uninvite", email, nil)
}

// Offer describes what a link offers.
type Offer struct {
	Invitation
	OrgName string
	// HasAccount reports whether the invited address has an account. Its holder signs in and calls
	// [Invitations.Join].
	HasAccount bool
}

// Offer returns what the token of a link offers, or [ErrLink].
func (is *Invitations) Offer(ctx context.Context, token string) (Offer, error) {
	if isSecret("", token) != nil {
		return Offer{}, ErrLink
	}
	v, err := is.store.ByHash(ctx, hashOf(token), is.now())
	if err != nil {
		return Offer{}, mapNotFound(err, ErrLink)
	}
	o, err := is.organizations.Get(ctx, v.Org)
	if err != nil {
		return Offer{}, mapNotFound(err, ErrLink)
	}
	offer := Offer{Invitation: v, OrgName: o.Name}
	if v.Email != "" {
		_, err := is.people.ByEmail(ctx, v.Email)
		if err != nil && !errors.Is(err, pgaccount.ErrNotFound) {
			return Offer{}, err
		}
		offer.HasAccount = err == nil
	}
	return offer, nil
}

// NewPerson is the form that accepts an invitation.
type NewPerson struct {
	OrgName  string // name for the organization, chosen by the first owner
	Email    string // used if the invitation has no address
	Name     string
	Password string
}

// Accept creates an account from a link, adds it to the organization and signs in. It returns
// [ErrLink], [ErrExists] if the address has an account, or an [*invalid.Error].
func (is *Invitations) Accept(ctx context.Context, token string, n NewPerson, c Client) (SignedIn, error) {
	offer, err := is.Offer(ctx, token)
	if err != nil {
		return SignedIn{}, err
	}
	j, err := is.checkNewPerson(ctx, offer, n)
	if err != nil {
		return SignedIn{}, err
	}
	j.Password, err = is.passwords.hash(ctx, n.Password)
	if err != nil {
		return SignedIn{}, err
	}
	if err := is.accept(ctx, token, j); err != nil {
		return SignedIn{}, err
	}
	return is.starter.start(ctx, j.Person, c, byInvitation)
}

// checkNewPerson validates the form of a person without an account, or of one who recovers theirs.
func (is *Invitations) checkNewPerson(ctx context.Context, offer Offer, n NewPerson) (j pgaccount.Joining, err error) {
	var wrong invalid.List
	var ok bool
	if j.Name, ok = normalName(n.Name); !ok {
		wrong.Add("name", wantName)
	}
	if j.Email = offer.Email; j.Email == "" {
		if j.Email, ok = NormalEmail(n.Email); !ok {
			wrong.Add("email", wantEmail)
		}
	}
	if offer.Setup {
		if j.OrgName, ok = normalName(n.OrgName); !ok {
			wrong.Add("organization", wantName)
		}
	}
	if problem := passwordProblem(n.Password, j.Email); problem != "" {
		wrong.Add("password", problem)
	}
	if err := wrong.Err(); err != nil {
		return j, err
	}
	j.Created, j.New = is.now(), true
	p, err := is.people.ByEmail(ctx, j.Email)
	switch {
	case err == nil && offer.Recovers:
		j.ID, j.New, j.Recovered = p.ID, false, true
		return j, nil
	case err == nil:
		return j, ErrExists
	case !errors.Is(err, pgaccount.ErrNotFound):
		return j, err
	}
	j.ID, err = is.random.id()
	return j, err
}

// Join adds a signed-in person to the organization of a link and switches to it. It returns
// [ErrLink] or [ErrOtherPerson].
func (is *Invitations) Join(ctx context.Context, s Session, token string) error {
	offer, err := is.Offer(ctx, token)
	if err != nil {
		return err
	}
	if offer.Email != "" && offer.Email != s.Email {
		return ErrOtherPerson
	}
	if err := is.accept(ctx, token, pgaccount.Joining{Person: pgaccount.Person{ID: s.Person,
		Email: s.Email}}); err != nil {
		return err
	}
	return is.sessions.Switch(ctx, s, offer.Org)
}

// accept consumes a link.
func (is *Invitations) accept(ctx context.Context, token string, j pgaccount.Joining) error {
	v, err := is.store.Accept(ctx, hashOf(token), j, is.now())
	if err != nil {
		return mapNotFound(err, ErrLink)
	}
	if v.Setup && is.onSetup != nil {
		is.onSetup()
	}
	by := Actor{Kind: Person, ID: j.ID, Name: j.Email, Org: v.Org}
	return is.activity.record(ctx, by, "member.join", j.Email,
		map[string]any{"role": v.Role, "invited_by": v.InvitedBy})
}
