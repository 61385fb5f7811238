package manage

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
)

// memberJSON is a member of the organization.
type memberJSON struct {
	ID        uuid.UUID `json:"id" doc:"ID of the person."`
	Email     string    `json:"email"`
	Name      string    `json:"name"`
	Role      string    `json:"role" enum:"owner,operator,viewer"`
	HasFactor bool      `json:"has_second_factor"`
	Since     time.Time `json:"since"`
}

type memberList struct {
	Members []memberJSON `json:"members"`
}

type roleInput struct {
	Role account.Role `json:"role" need:"true" enum:"owner,operator,viewer"`
}

// invitationJSON is an open invitation.
type invitationJSON struct {
	ID        uuid.UUID `json:"id"`
	Email     string    `json:"email" doc:"Empty: the link works for anyone who has it."`
	Role      string    `json:"role" enum:"owner,operator,viewer"`
	InvitedBy string    `json:"invited_by"`
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires"`
}

type invitationList struct {
	Invitations []invitationJSON `json:"invitations"`
}

type invitationInput struct {
	Email string       `json:"email" need:"true"`
	Role  account.Role `json:"role" need:"true" enum:"owner,operator,viewer"`
}

type invitedJSON struct {
	Link   string `json:"link" doc:"One-time link by which the invited person becomes a member. It is shown once."`
	Mailed bool   `json:"mailed" doc:"Whether it was sent by mail; if not, pass it on yourself."`
}

func (a *API) memberRoutes() []route {
	const tag = "members"
	return []route{
		{
			method: http.MethodGet, path: "members", scope: account.Read, name: "listMembers", tag: tag,
			summary: "List the members of the organization, owners first", out: memberList{}, do: a.listMembers,
		},
		{
			method: http.MethodPatch, path: "members/{member}", scope: account.Admin, name: "changeMember", tag: tag,
			summary: "Change the role of a member", in: roleInput{}, example: `{"role": "viewer"}`, status: http.StatusNoContent, do: a.changeMember,
		},
		{
			method: http.MethodDelete, path: "members/{member}", scope: account.Admin, name: "removeMember", tag: tag,
			summary: "Remove a member from the organization", more: "Tokens that the person has created stay valid.", status: http.StatusNoContent,
			do: a.onID("member", func(c *call, id uuid.UUID) error { return a.Accounts.Members.Remove(c, c.actor, id) }),
		},
		{
			method: http.MethodGet, path: "invitations", scope: account.Admin, name: "listInvitations", tag: tag,
			summary: "List the open invitations", out: invitationList{}, do: a.listInvitations,
		},
		{
			method: http.MethodPost, path: "invitations", scope: account.Admin, name: "invite", tag: tag,
			summary: "Invite a person", more: "It replaces an earlier invitation of the same address, and is valid for three days.",
			in: invitationInput{}, example: `{"email": "operator@example.com", "role": "operator"}`, out: invitedJSON{}, status: http.StatusCreated, key: keySecret, do: a.invite,
		},
		{
			method: http.MethodDelete, path: "invitations/{invitation}", scope: account.Admin, name: "withdrawInvitation", tag: tag,
			summary: "Withdraw an invitation", status: http.StatusNoContent,
			do: a.onID("invitation", func(c *call, id uuid.UUID) error { return a.Accounts.Invitations.Revoke(c, c.actor, id) }),
		},
	}
}

// onID returns the handler of an operation on the object whose UUID is in the path.
func (a *API) onID(name string, do func(*call, uuid.UUID) error) func(*call) (reply, error) {
	return func(c *call) (reply, error) {
		id, err := c.id(name)
		if err != nil {
			return reply{}, err
		}
		return reply{}, do(c, id)
	}
}

func (a *API) listMembers(c *call) (reply, error) {
	list, err := a.Accounts.Members.List(c, c.actor)
	if err != nil {
		return reply{}, err
	}
	out := memberList{Members: make([]memberJSON, len(list))}
	for i, m := range list {
		out.Members[i] = memberJSON{m.Person, m.Email, m.Name, m.Role, m.HasFactor, m.Since.UTC()}
	}
	return answer(out)
}

func (a *API) changeMember(c *call) (reply, error) {
	id, err := c.id("member")
	if err != nil {
		return reply{}, err
	}
	in, err := decode[roleInput](c)
	if err != nil {
		return reply{}, err
	}
	return reply{}, a.Accounts.Members.SetRole(c, c.actor, id, in.Role)
}

func (a *API) listInvitations(c *call) (reply, error) {
	list, err := a.Accounts.Invitations.List(c, c.actor)
	if err != nil {
		return reply{}, err
	}
	out := invitationList{Invitations: make([]invitationJSON, len(list))}
	for i, v := range list {
		out.Invitations[i] = invitationJSON{v.ID, v.Email, v.Role, v.InvitedBy, v.Created.UTC(), v.Expires.UTC()}
	}
	return answer(out)
}

func (a *API) invite(c *call) (reply, error) {
	in, err := decode[invitationInput](c)
	if err != nil {
		return reply{}, err
	}
	link, mailed, err := a.Accounts.Invitations.Invite(c, c.actor, in.Email, in.Role)
	if err != nil {
		return reply{}, err
	}
	return answer(invitedJSON{link, mailed})
}
