package account

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account/pgaccount"
)

// How long links are good.
const (
	SetupLife      = 24 * time.Hour // to make the first owner, or an owner anew
	InvitationLife = 72 * time.Hour
)

// maxInvitations is how many invitations of an organization are open at once.
const maxInvitations = 100

// Invitation is one that is open.
type Invitation = pgaccount.Invitation

// SetupLink returns a one-time link that makes the first owner, empty when some
// organization has an owner. Earlier ones stay good until one is used.
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

// OwnerLink returns a one-time link that makes an owner of an organization. With
// an address it is for that person alone, and gives somebody who has lost the
// password a new one and takes the second factor away. Only the server's
// administrator may ask for it.
func (a *Accounts) OwnerLink(ctx context.Context, by Actor, slug, email string) (string, error) {
	if by.Kind != Server {
		return "", ErrForbidden
	}
	if email != "" {
		normal, ok := NormalEmail(email)
		if !ok {
			return "", invalid("email", wantEmail)
		}
		email = normal
	}
	o, err := a.Store.OrganizationBySlug(ctx, slug)
	if err != nil {
		return "", known(err)
	}
	v := Invitation{Org: o.ID, Role: string(Owner), Email: email, Recovers: email != "", InvitedBy: by.Name}
	link, err := a.link(ctx, v, "/console/invitation", SetupLife)
	if err != nil {
		return "", err
	}
	by.Org = o.ID
	return link, a.record(ctx, by, "owner.link", email, nil)
}

// Invite makes a one-time link that lets somebody join the actor's
// organization, and mails it if mail is configured; mailed tells whether it was.
// It replaces earlier ones to the same address. *[RateError] when too many were
// mailed a short time ago.
func (a *Accounts) Invite(ctx context.Context, by Actor, email string, role Role) (link string, mailed bool, err error) {
	if !by.May(Admin) {
		return "", false, ErrForbidden
	}
	var wrong complaints
	email, ok := NormalEmail(email)
	if !ok {
		wrong.add("email", wantEmail)
	}
	if _, err := ParseRole(string(role)); err != nil {
		wrong.add("role", "must be owner, operator or viewer")
	}
	if err := wrong.err(); err != nil {
		return "", false, err
	}
	if n, err := a.Store.CountInvitations(ctx, by.Org, a.Now()); err != nil || n >= maxInvitations {
		return "", false, errors.Join(err, ErrTooMany)
	}
	o, err := a.Store.Organization(ctx, by.Org)
	if err != nil {
		return "", false, known(err)
	}
	if a.Mailer != nil {
		if _, err := a.attempt(ctx, mailLimit, by.Org.String()); err != nil {
			return "", false, err
		}
	}
	link, err = a.link(ctx, Invitation{Org: o.ID, Role: string(role), Email: email, InvitedBy: by.Name}, "/console/invitation", InvitationLife)
	if err != nil {
		return "", false, err
	}
	if err := a.record(ctx, by, "member.invite", email, map[string]any{"role": string(role)}); err != nil {
		return "", false, err
	}
	return link, a.mail(ctx, email, o, role, link), nil
}

// mail sends an invitation. That it cannot be sent is no failure: the owner has
// the link.
func (a *Accounts) mail(ctx context.Context, email string, o Organization, role Role, link string) bool {
	if a.Mailer == nil {
		return false
	}
	text := fmt.Sprintf("You are invited to %s on Proofline, as %s.\n\nOpen this link within %d hours to accept. It works once.\n\n%s\n",
		o.Name, role, int(InvitationLife.Hours()), link)
	if err := a.Mailer.Send(ctx, email, "Invitation to "+o.Name, text); err != nil {
		a.Log.Warn("invitation not mailed", "err", err)
		return false
	}
	return true
}

// link stores an invitation and returns its address.
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

// Invitations returns the open ones of the actor's organization, newest first.
func (a *Accounts) Invitations(ctx context.Context, by Actor) ([]Invitation, error) {
	if !by.May(Admin) {
		return nil, ErrForbidden
	}
	return a.Store.Invitations(ctx, by.Org, a.Now())
}

// Uninvite takes an invitation back; [ErrNotFound].
func (a *Accounts) Uninvite(ctx context.Context, by Actor, id uuid.UUID) error {
	if !by.May(Admin) {
		return ErrForbidden
	}
	email, err := a.Store.RemoveInvitation(ctx, by.Org, id)
	if err != nil {
		return known(err)
	}
	return a.record(ctx, by, "member.uninvite", email, nil)
}

// Offer is what a link leads to.
type Offer struct {
	Invitation
	OrgName string
	// HasAccount: the address of the invitation has an account, whose person
	// signs in and then calls [Accounts.Join].
	HasAccount bool
}

// Offer returns what the token of a link leads to; [ErrLink].
func (a *Accounts) Offer(ctx context.Context, token string) (Offer, error) {
	if isSecret("", token) != nil {
		return Offer{}, ErrLink
	}
	v, err := a.Store.Invitation(ctx, hashOf(token), a.Now())
	if err != nil {
		return Offer{}, orElse(err, ErrLink)
	}
	o, err := a.Store.Organization(ctx, v.Org)
	if err != nil {
		return Offer{}, orElse(err, ErrLink)
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

// NewPerson is what somebody who accepts an invitation says.
type NewPerson struct {
	OrgName  string // of the first owner: a name for the organization
	Email    string // of a link that is for no address
	Name     string
	Password string
}

// Accept makes an account and a member by a link, and signs in: [ErrLink],
// [ErrExists] when the address has an account, *[InvalidError].
func (a *Accounts) Accept(ctx context.Context, token string, n NewPerson, c Client) (SignedIn, error) {
	offer, err := a.Offer(ctx, token)
	if err != nil {
		return SignedIn{}, err
	}
	j, err := a.joining(ctx, offer, n)
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
	return a.open(ctx, j.Person, c, byInvitation)
}

// joining checks what somebody says who has no account, or none that opens.
func (a *Accounts) joining(ctx context.Context, offer Offer, n NewPerson) (j pgaccount.Joining, err error) {
	var wrong complaints
	var ok bool
	if j.Name, ok = normalName(n.Name); !ok {
		wrong.add("name", wantName)
	}
	if j.Email = offer.Email; j.Email == "" {
		if j.Email, ok = NormalEmail(n.Email); !ok {
			wrong.add("email", wantEmail)
		}
	}
	if offer.Setup {
		if j.OrgName, ok = normalName(n.OrgName); !ok {
			wrong.add("organization", wantName)
		}
	}
	if problem := passwordProblem(n.Password, j.Email); problem != "" {
		wrong.add("password", problem)
	}
	if err := wrong.err(); err != nil {
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

// Join makes somebody who is signed in a member by a link, and goes to that
// organization: [ErrLink], [ErrOtherPerson].
func (a *Accounts) Join(ctx context.Context, s Session, token string) error {
	offer, err := a.Offer(ctx, token)
	if err != nil {
		return err
	}
	if offer.Email != "" && offer.Email != s.Email {
		return ErrOtherPerson
	}
	if err := a.accept(ctx, token, pgaccount.Joining{Person: pgaccount.Person{ID: s.Person, Email: s.Email}}); err != nil {
		return err
	}
	return a.Switch(ctx, s, offer.Org)
}

// accept uses a link up.
func (a *Accounts) accept(ctx context.Context, token string, j pgaccount.Joining) error {
	v, err := a.Store.Accept(ctx, hashOf(token), j, a.Now())
	if err != nil {
		return orElse(err, ErrLink)
	}
	if v.Setup && a.OnSetup != nil {
		a.OnSetup()
	}
	by := Actor{Kind: Person, ID: j.ID, Name: j.Email, Org: v.Org}
	return a.record(ctx, by, "member.join", j.Email, map[string]any{"role": v.Role, "invited_by": v.InvitedBy})
}
