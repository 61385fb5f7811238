package account

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/internal/invalid"
)

// Lifetimes of links.
const (
	SetupLife      = 24 * time.Hour // for the first owner and for owner links
	InvitationLife = 72 * time.Hour
)

// maxInvitations is the number of open invitations that an organization may have.
const maxInvitations = 100

// Invitation is an open invitation.
type Invitation = pgaccount.Invitation

// SetupLink returns a one-time link that creates the first owner; empty if any organization has an
// owner. Earlier links stay valid until one is used.
func (a *Accounts) SetupLink(ctx context.Context) (string, error) {
	owned, err := a.Store.HasOwner(ctx)
	if err != nil || owned {
		return "", err
	}
	v := Invitation{Org: MainOrg, Role: string(Owner), Setup: true, InvitedBy: "first start"}
	return a.link(ctx, v, "/console/setup", SetupLife)
}

// HasOwner reports whether some organization has an owner.
func (a *Accounts) HasOwner(ctx context.Context) (bool, error) { return a.Store.HasOwner(ctx) }

// OwnerLink returns a one-time link that creates an owner of an organization. With an address, only
// that person can use it: a person with an account gets a new password and loses the second factor.
// Only the server's administrator may create one.
func (a *Accounts) OwnerLink(ctx context.Context, by Actor, slug, email string) (string, error) {
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
	o, err := a.Store.OrganizationBySlug(ctx, slug)
	if err != nil {
		return "", mapError(err)
	}
	v := Invitation{Org: o.ID, Role: string(Owner), Email: email, Recovers: email != "", InvitedBy: by.Name}
	link, err := a.link(ctx, v, "/console/invitation", SetupLife)
	if err != nil {
		return "", err
	}
	by.Org = o.ID
	return link, a.record(ctx, by, "owner.link", email, nil)
}

// Invite creates a one-time link for joining the actor's organization, and mails it if mail is
// configured; mailed reports whether it was sent. It replaces earlier invitations to the same
// address. It returns a *[RateError] if too many were mailed recently.
func (a *Accounts) Invite(ctx context.Context, by Actor, email string, role Role) (link string, mailed bool,
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
	if n, err := a.Store.CountInvitations(ctx, by.Org, a.Now()); err != nil || n >= maxInvitations {
		return "", false, errors.Join(err, ErrTooMany)
	}
	o, err := a.Store.Organization(ctx, by.Org)
	if err != nil {
		return "", false, mapError(err)
	}
	if a.Mailer != nil {
		if _, err := a.attempt(ctx, mailLimit, by.Org.String()); err != nil {
			return "", false, err
		}
	}
	link, err = a.link(ctx, Invitation{Org: o.ID, Role: string(role), Email: email, InvitedBy: by.Name},
		"/console/invitation", InvitationLife)
	if err != nil {
		return "", false, err
	}
	if err := a.record(ctx, by, "member.invite", email, map[string]any{"role": string(role)}); err != nil {
		return "", false, err
	}
	return link, a.mail(ctx, email, o, role, link), nil
}

// mail sends an invitation and reports whether that worked. The owner has the link in any case.
func (a *Accounts) mail(ctx context.Context, email string, o Organization, role Role, link string) bool {
	if a.Mailer == nil {
		return false
	}
	text := fmt.Sprintf("You are invited to %s on Proofline, as %s.\n\nOpen this link within %d hours to accept. It works once.\n\n%s\n",
		o.Name, role, int(InvitationLife.Hours()), link)
	if err := a.Mailer.Send(ctx, email, "Invitation to "+o.Name, text); err != nil {
		a.Log.Warn("cannot mail invitation", "err", err)
		return false
	}
	return true
}

// link stores an invitation and returns its URL.
func (a *Accounts) link(ctx context.Context, v Invitation, path string, life time.Duration) (string, error) {
	id, err := a.newID()
	if err != nil {
		return "", err
	}
	token, hash, err := a.secret("")
	if err != nil {
		return "", err
	}
	v.ID, v.Created = id, a.Now()
	v.Expires = v.Created.Add(life)
	return a.URL + path + "#t=" + token, a.Store.AddInvitation(ctx, v, hash)
}

// Invitations returns the open invitations of the actor's organization, newest first.
func (a *Accounts) Invitations(ctx context.Context, by Actor) ([]Invitation, error) {
	if !by.May(Admin) {
		return nil, ErrForbidden
	}
	return a.Store.Invitations(ctx, by.Org, a.Now())
}

// Uninvite revokes an invitation, or returns [ErrNotFound].
func (a *Accounts) Uninvite(ctx context.Context, by Actor, id uuid.UUID) error {
	if !by.May(Admin) {
		return ErrForbidden
	}
	email, err := a.Store.RemoveInvitation(ctx, by.Org, id)
	if err != nil {
		return mapError(err)
	}
	return a.record(ctx, by, "member.uninvite", email, nil)
}

// Offer describes what a link offers.
type Offer struct {
	Invitation
	OrgName string
	// HasAccount reports whether the invited address has an account. Its person signs in and calls
	// [Accounts.Join].
	HasAccount bool
}

// Offer returns what the token of a link offers, or [ErrLink].
func (a *Accounts) Offer(ctx context.Context, token string) (Offer, error) {
	if isSecret("", token) != nil {
		return Offer{}, ErrLink
	}
	v, err := a.Store.Invitation(ctx, hashOf(token), a.Now())
	if err != nil {
		return Offer{}, mapNotFound(err, ErrLink)
	}
	o, err := a.Store.Organization(ctx, v.Org)
	if err != nil {
		return Offer{}, mapNotFound(err, ErrLink)
	}
	offer := Offer{Invitation: v, OrgName: o.Name}
	if v.Email != "" {
		_, err := a.Store.PersonByEmail(ctx, v.Email)
		if err != nil && !errors.Is(err, pgaccount.ErrNotFound) {
			return Offer{}, err
		}
		offer.HasAccount = err == nil
	}
	return offer, nil
}

// NewPerson is the form that accepts an invitation.
type NewPerson struct {
	OrgName  string // name for the organization, from the first owner
	Email    string // used if the invitation has no address
	Name     string
	Password string
}

// Accept creates an account from a link, adds it to the organization and signs in. It returns
// [ErrLink], [ErrExists] if the address has an account, or an [*invalid.Error].
func (a *Accounts) Accept(ctx context.Context, token string, n NewPerson, c Client) (SignedIn, error) {
	offer, err := a.Offer(ctx, token)
	if err != nil {
		return SignedIn{}, err
	}
	j, err := a.checkNewPerson(ctx, offer, n)
	if err != nil {
		return SignedIn{}, err
	}
	j.Password, err = a.hashPassword(ctx, n.Password)
	if err != nil {
		return SignedIn{}, err
	}
	if err := a.accept(ctx, token, j); err != nil {
		return SignedIn{}, err
	}
	return a.startSession(ctx, j.Person, c, byInvitation)
}

// checkNewPerson validates the form of a person without an account, or of one who recovers theirs.
func (a *Accounts) checkNewPerson(ctx context.Context, offer Offer, n NewPerson) (j pgaccount.Joining, err error) {
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
	j.Created, j.New = a.Now(), true
	p, err := a.Store.PersonByEmail(ctx, j.Email)
	switch {
	case err == nil && offer.Recovers:
		j.ID, j.New, j.Recovered = p.ID, false, true
		return j, nil
	case err == nil:
		return j, ErrExists
	case !errors.Is(err, pgaccount.ErrNotFound):
		return j, err
	}
	j.ID, err = a.newID()
	return j, err
}

// Join adds a signed-in person to the organization of a link and switches to it. It returns
// [ErrLink] or [ErrOtherPerson].
func (a *Accounts) Join(ctx context.Context, s Session, token string) error {
	offer, err := a.Offer(ctx, token)
	if err != nil {
		return err
	}
	if offer.Email != "" && offer.Email != s.Email {
		return ErrOtherPerson
	}
	if err := a.accept(ctx, token, pgaccount.Joining{Person: pgaccount.Person{ID: s.Person,
		Email: s.Email}}); err != nil {
		return err
	}
	return a.Switch(ctx, s, offer.Org)
}

// accept consumes a link.
func (a *Accounts) accept(ctx context.Context, token string, j pgaccount.Joining) error {
	v, err := a.Store.Accept(ctx, hashOf(token), j, a.Now())
	if err != nil {
		return mapNotFound(err, ErrLink)
	}
	if v.Setup && a.OnSetup != nil {
		a.OnSetup()
	}
	by := Actor{Kind: Person, ID: j.ID, Name: j.Email, Org: v.Org}
	return a.record(ctx, by, "member.join", j.Email, map[string]any{"role": v.Role, "invited_by": v.InvitedBy})
}
