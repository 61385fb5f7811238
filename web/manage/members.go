package manage

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/wire"
)

// members serves the members of an organization, and invitations.
type members struct {
	members     *account.Members
	invitations *account.Invitations
}

func (a members) routes() []route {
	const tag = "members"
	return []route{
		{
			method: http.MethodGet, path: "members", scope: account.Read, name: "listMembers", tag: tag,
			summary: "List the members of the organization, owners first", out: wire.MemberList{}, do: a.listMembers,
		},
		{
			method: http.MethodPatch, path: "members/{member}", scope: account.Admin, name: "changeMember", tag: tag,
			summary: "Change the role of a member", in: wire.RoleInput{}, example: `{"role": "viewer"}`,
			status: http.StatusNoContent, do: a.changeMember,
		},
		{
			method: http.MethodDelete, path: "members/{member}", scope: account.Admin, name: "removeMember", tag: tag,
			summary: "Remove a member from the organization", more: "Tokens that the person has created stay valid.",
			status: http.StatusNoContent,
			do:     onID("member", func(c *call, id uuid.UUID) error { return a.members.Remove(c, c.actor, id) }),
		},
		{
			method: http.MethodGet, path: "invitations", scope: account.Admin, name: "listInvitations", tag: tag,
			summary: "List the open invitations", out: wire.InvitationList{}, do: a.listInvitations,
		},
		{
			method: http.MethodPost, path: "invitations", scope: account.Admin, name: "invite", tag: tag,
			summary: "Invite a person",
			more:    "It replaces an earlier invitation of the same address, and is valid for three days.",
			in:      wire.InvitationInput{}, example: `{"email": "operator@example.com", "role": "operator"}`,
			out: wire.Invited{}, status: http.StatusCreated, key: keySecret, do: a.invite,
		},
		{
			method: http.MethodDelete, path: "invitations/{invitation}", scope: account.Admin,
			name: "withdrawInvitation", tag: tag,
			summary: "Withdraw an invitation", status: http.StatusNoContent,
			do: onID("invitation", func(c *call, id uuid.UUID) error { return a.invitations.Revoke(c, c.actor, id) }),
		},
	}
}

func (a members) listMembers(c *call) (reply, error) {
	list, err := a.members.List(c, c.actor)
	if err != nil {
		return reply{}, err
	}
	out := wire.MemberList{Members: make([]wire.Member, len(list))}
	for i, m := range list {
		out.Members[i] = wire.Member{
			ID: m.Person, Email: m.Email, Name: m.Name, Role: m.Role, HasFactor: m.HasFactor, Since: m.Since.UTC(),
		}
	}
	return answer(out)
}

func (a members) changeMember(c *call) (reply, error) {
	id, err := c.id("member")
	if err != nil {
		return reply{}, err
	}
	in, err := decode[wire.RoleInput](c)
	if err != nil {
		return reply{}, err
	}
	return reply{}, a.members.SetRole(c, c.actor, id, in.Role)
}

func (a members) listInvitations(c *call) (reply, error) {
	list, err := a.invitations.List(c, c.actor)
	if err != nil {
		return reply{}, err
	}
	out := wire.InvitationList{Invitations: make([]wire.Invitation, len(list))}
	for i, v := range list {
		out.Invitations[i] = wire.Invitation{
			ID: v.ID, Email: v.Email, Role: v.Role, InvitedBy: v.InvitedBy, Created: v.Created.UTC(),
			Expires: v.Expires.UTC(),
		}
	}
	return answer(out)
}

func (a members) invite(c *call) (reply, error) {
	in, err := decode[wire.InvitationInput](c)
	if err != nil {
		return reply{}, err
	}
	link, mailed, err := a.invitations.Invite(c, c.actor, in.Email, in.Role)
	if err != nil {
		return reply{}, err
	}
	return answer(wire.Invited{Link: link, Mailed: mailed})
}
