package console

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
)

// organizationRoutes are those of an organization: members, invitations, hosts.
func (c *Console) organizationRoutes() []route {
	return []route{
		{GET, "/organization", account.Read, c.showOrganization},
		{POST, "/organization", account.Admin, c.sudo(c.changeOrganization)},
		{POST, "/organization/logo", account.Admin, c.sudo(c.changeLogo)},
		{GET, "/organization/logo", account.Read, c.showLogo},
		{POST, "/organization/leave", SignedIn, c.leaveOrganization},
		{POST, "/organization/members/:id/role", account.Admin, c.sudo(c.changeRole)},
		{POST, "/organization/members/:id/remove", account.Admin, c.sudo(c.removeMember)},
		{POST, "/organization/invitations", account.Admin, c.sudo(c.invite)},
		{POST, "/organization/invitations/:id/remove", account.Admin, c.sudo(c.uninvite)},
		{POST, "/organization/hosts", account.Admin, c.sudo(c.addHost)},
		{POST, "/organization/hosts/verify", account.Admin, c.sudo(c.verifyHost)},
		{POST, "/organization/hosts/remove", account.Admin, c.sudo(c.removeHost)},
	}
}

// organizationPage is what the page of an organization shows.
type organizationPage struct {
	account.Organization
	Members     []account.Member
	Invitations []account.Invitation // for owners
	Hosts       []account.Host
	Self        uuid.UUID // who looks at it
	Fresh       bool
	Roles       []account.Role
	Form        map[string]string // as it was sent
}

func (x *request) organizationPage(ctx context.Context) (page organizationPage, err error) {
	a := x.console.Accounts
	page = organizationPage{
		Self: x.Actor.ID, Fresh: x.isFresh(), Roles: []account.Role{account.Viewer, account.Operator, account.Owner},
		Form: map[string]string{"email": x.form("email"), "host": x.form("host"), "role": x.form("role")},
	}
	if page.Organization, err = a.Organizations.Get(ctx, x.Actor); err != nil {
		return page, err
	}
	if page.Members, err = a.Members.List(ctx, x.Actor); err != nil {
		return page, err
	}
	if page.Hosts, err = a.Hosts.List(ctx, x.Actor); err != nil || !x.Actor.May(account.Admin) {
		return page, err
	}
	page.Invitations, err = a.Invitations.List(ctx, x.Actor)
	return page, err
}

func (c *Console) showOrganization(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	page, err := x.organizationPage(ctx)
	if err != nil {
		return err
	}
	return x.page("organization", page)
}

// onOrganization does something, and shows the organization's page again with
// what is wrong, or with a notice.
func (x *request) onOrganization(field, notice string, do func(context.Context) error) error {
	ctx, stop := x.wait()
	defer stop()
	err := do(ctx)
	if err == nil {
		return x.done("/organization", notice)
	}
	page, pageErr := x.organizationPage(ctx)
	if pageErr != nil {
		return pageErr
	}
	return x.refused("organization", field, page, err)
}

func (c *Console) changeOrganization(x *request) error {
	return x.onOrganization("name", "organization-changed", func(ctx context.Context) error {
		name, require := x.form("name"), x.form("require_second_factor") != ""
		_, err := c.Accounts.Organizations.Change(ctx, x.Actor, account.OrganizationChange{Name: &name, RequireFactor: &require})
		return err
	})
}

// changeLogo takes a new logo for rooms without one of their own, or takes the
// logo away.
func (c *Console) changeLogo(x *request) error {
	if err := x.readUpload(); err != nil {
		return err
	}
	if x.IsElsewhere() {
		return ErrSwitched // other forms are checked before they come here
	}
	return x.onOrganization("logo", "organization-changed", func(ctx context.Context) error {
		url, err := x.logo("logo")
		if err != nil {
			return invalid.Field("logo", "The image "+err.Error())
		}
		if url == "" && x.form("logo_remove") == "" {
			return invalid.Field("logo", "Choose an image first.")
		}
		mediaType, image, err := room.ImageOf(url)
		if err != nil {
			return invalid.Field("logo", "The image "+err.Error())
		}
		_, err = c.Accounts.Organizations.Change(ctx, x.Actor, account.OrganizationChange{Logo: &account.Logo{MediaType: mediaType, Image: image}})
		return err
	})
}

// showLogo answers with the logo, for the organization's page.
func (c *Console) showLogo(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	logo, err := c.Accounts.Organizations.Logo(ctx, x.Actor.Org)
	if err != nil {
		return err
	}
	return x.Blob(http.StatusOK, logo.MediaType, logo.Image)
}

// id returns the id in the path.
func (x *request) id() (uuid.UUID, error) {
	id, err := uuid.Parse(x.Param("id"))
	if err != nil {
		return id, account.ErrNotFound
	}
	return id, nil
}

func (c *Console) changeRole(x *request) error {
	return x.onOrganization("", "role-changed", func(ctx context.Context) error {
		id, err := x.id()
		if err != nil {
			return err
		}
		return c.Accounts.Members.SetRole(ctx, x.Actor, id, account.Role(x.form("role")))
	})
}

func (c *Console) removeMember(x *request) error {
	if !x.isConfirmed() {
		who, err := c.memberName(x)
		if err != nil {
			return err
		}
		return x.confirm(plainQuestion("Remove "+who+"?", "Remove", "This person loses access to the rooms of your organization at once.", "Tokens that this person has made keep working until you revoke them.").Dangerous(), "/organization")
	}
	return x.onOrganization("", "member-removed", func(ctx context.Context) error {
		id, err := x.id()
		if err != nil {
			return err
		}
		return c.Accounts.Members.Remove(ctx, x.Actor, id)
	})
}

// memberName returns the address of the member that the path names.
func (c *Console) memberName(x *request) (string, error) {
	ctx, stop := x.wait()
	defer stop()
	id, err := x.id()
	if err != nil {
		return "", err
	}
	list, err := c.Accounts.Members.List(ctx, x.Actor)
	if err != nil {
		return "", err
	}
	for _, m := range list {
		if m.Person == id {
			return m.Email, nil
		}
	}
	return "", account.ErrNotFound
}

func (c *Console) leaveOrganization(x *request) error {
	if !x.isConfirmed() {
		return x.confirm(plainQuestion("Leave "+x.Organization.Name+"?", "Leave", "Only an owner can invite you again.").Dangerous(), "/account")
	}
	ctx, stop := x.wait()
	defer stop()
	if err := c.Accounts.Members.Remove(ctx, x.Actor, x.Actor.ID); err != nil {
		page, pageErr := x.accountPage(ctx)
		if pageErr != nil {
			return pageErr
		}
		return x.refused("account", "", page, err)
	}
	return x.done("/account", "left")
}

// invitedPage shows the link of an invitation, this once.
type invitedPage struct {
	Email  string
	Role   account.Role
	Link   string
	Mailed bool
}

func (c *Console) invite(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	role := account.Role(x.form("role"))
	link, mailed, err := c.Accounts.Invitations.Invite(ctx, x.Actor, x.form("email"), role)
	if err == nil {
		return x.page("invited", invitedPage{x.form("email"), role, link, mailed})
	}
	page, pageErr := x.organizationPage(ctx)
	if pageErr != nil {
		return pageErr
	}
	return x.refused("organization", "email", page, err)
}

func (c *Console) uninvite(x *request) error {
	return x.onOrganization("", "uninvited", func(ctx context.Context) error {
		id, err := x.id()
		if err != nil {
			return err
		}
		return c.Accounts.Invitations.Revoke(ctx, x.Actor, id)
	})
}

func (c *Console) addHost(x *request) error {
	return x.onOrganization("host", "host-added", func(ctx context.Context) error {
		_, err := c.Accounts.Hosts.Add(ctx, x.Actor, x.form("host"))
		return err
	})
}

func (c *Console) verifyHost(x *request) error {
	return x.onOrganization("", "host-verified", func(ctx context.Context) error {
		return c.Accounts.Hosts.Verify(ctx, x.Actor, x.form("claimed"))
	})
}

func (c *Console) removeHost(x *request) error {
	if !x.isConfirmed() {
		return x.confirm(plainQuestion("Give up "+x.form("claimed")+"?", "Give up", "No new room can be published under this host until you verify it again.").Dangerous(), "/organization")
	}
	return x.onOrganization("", "host-removed", func(ctx context.Context) error {
		return c.Accounts.Hosts.Remove(ctx, x.Actor, x.form("claimed"))
	})
}
