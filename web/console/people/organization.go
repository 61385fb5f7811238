package people

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room/branding"
	"github.com/proofline/proofline/web/console/shell"
)

// organization serves the pages of an organization: its name, logo, members, invitations and hosts.
type organization struct {
	organizations *account.Organizations
	members       *account.Members
	invitations   *account.Invitations
	hosts         *account.Hosts
	quotas        *control.Quotas // nil: none are shown
}

func (h *organization) routes() []shell.Route {
	return []shell.Route{
		shell.Get("/organization", account.Read, h.showOrganization),
		shell.Post("/organization", account.Admin, confirmed(h.changeOrganization)),
		shell.Post("/organization/logo", account.Admin, confirmed(h.changeLogo)),
		shell.Get("/organization/logo", account.Read, h.showLogo),
		shell.Post("/organization/members/:id/role", account.Admin, confirmed(h.changeRole)),
		shell.Post("/organization/members/:id/remove", account.Admin, confirmed(h.removeMember)),
		shell.Post("/organization/invitations", account.Admin, confirmed(h.invite)),
		shell.Post("/organization/invitations/:id/remove", account.Admin, confirmed(h.uninvite)),
		shell.Post("/organization/hosts", account.Admin, confirmed(h.addHost)),
		shell.Post("/organization/hosts/verify", account.Admin, confirmed(h.verifyHost)),
		shell.Post("/organization/hosts/remove", account.Admin, confirmed(h.removeHost)),
	}
}

// organizationPage is the data of the page of an organization.
type organizationPage struct {
	account.Organization
	Members     []account.Member
	Invitations []account.Invitation // shown to owners
	Hosts       []account.Host
	Quota       []quotaLine // of limits that are set
	Self        uuid.UUID   // the person who views the page
	Fresh       bool
	Roles       []account.Role
	Form        map[string]string // fields as sent
}

func (h *organization) organizationPage(ctx context.Context, x *shell.Request) (page organizationPage, err error) {
	page = organizationPage{
		Self: x.Actor.ID, Fresh: isFresh(x), Roles: []account.Role{account.Viewer, account.Operator, account.Owner},
		Form: map[string]string{"email": x.Form("email"), "host": x.Form("host"), "role": x.Form("role")},
	}
	if page.Organization, err = h.organizations.Get(ctx, x.Actor); err != nil {
		return page, err
	}
	if page.Quota, err = h.quotaLines(ctx, x.Actor); err != nil {
		return page, err
	}
	if page.Members, err = h.members.List(ctx, x.Actor); err != nil {
		return page, err
	}
	if page.Hosts, err = h.hosts.List(ctx, x.Actor); err != nil || !x.Actor.May(account.Admin) {
		return page, err
	}
	page.Invitations, err = h.invitations.List(ctx, x.Actor)
	return page, err
}

// quotaLine is one limit of the organization.
type quotaLine struct {
	What       string
	Used, Most uint64
}

// IsReached reports whether nothing is left.
func (l quotaLine) IsReached() bool { return l.Used >= l.Most }

func (h *organization) quotaLines(ctx context.Context, actor account.Actor) (list []quotaLine, err error) {
	if h.quotas == nil {
		return nil, nil
	}
	u, err := h.quotas.Usage(ctx, actor)
	for _, l := range []quotaLine{
		{"Rooms that have not ended", u.OpenRooms, u.Rooms},
		{"Visitors in line in all rooms", u.InLine, u.Waiting},
		{"Live streams of pages at this server", u.Open, u.Streams},
		{"Entries of all transcripts", u.Stored, u.Entries},
	} {
		if l.Most > 0 {
			list = append(list, l)
		}
	}
	return list, err
}

func (h *organization) showOrganization(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	page, err := h.organizationPage(ctx, x)
	if err != nil {
		return err
	}
	return x.Page("organization", page)
}

// onOrganization changes the organization, and shows its page with the problems or with a notice.
func (h *organization) onOrganization(x *shell.Request, field, notice string, do func(context.Context) error) error {
	ctx, stop := x.Wait()
	defer stop()
	err := do(ctx)
	if err == nil {
		return x.Done("/organization", notice)
	}
	page, pageErr := h.organizationPage(ctx, x)
	if pageErr != nil {
		return pageErr
	}
	return refused(x, "organization", field, page, err)
}

func (h *organization) changeOrganization(x *shell.Request) error {
	return h.onOrganization(x, "name", "organization-changed", func(ctx context.Context) error {
		name, require := x.Form("name"), x.Form("require_second_factor") != ""
		_, err := h.organizations.Change(ctx, x.Actor, account.OrganizationChange{Name: &name,
			RequireFactor: &require})
		return err
	})
}

// changeLogo changes or removes the logo of rooms without one of their own.
func (h *organization) changeLogo(x *shell.Request) error {
	if err := x.ReadUpload(shell.MaxLogoUpload); err != nil {
		return err
	}
	if x.IsElsewhere() {
		return shell.ErrSwitched // the shell cannot check uploads
	}
	return h.onOrganization(x, "logo", "organization-changed", func(ctx context.Context) error {
		url, err := x.Logo("logo")
		if err != nil {
			return invalid.Field("logo", "The image "+err.Error())
		}
		if url == "" && x.Form("logo_remove") == "" {
			return invalid.Field("logo", "Choose an image first.")
		}
		mediaType, image, err := branding.ImageOf(url)
		if err != nil {
			return invalid.Field("logo", "The image "+err.Error())
		}
		_, err = h.organizations.Change(ctx, x.Actor,
			account.OrganizationChange{Logo: &account.Logo{MediaType: mediaType, Image: image}})
		return err
	})
}

// showLogo answers with the image of the logo.
func (h *organization) showLogo(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	logo, err := h.organizations.Logo(ctx, x.Actor.Org)
	if err != nil {
		return err
	}
	return x.Blob(http.StatusOK, logo.MediaType, logo.Image)
}

func (h *organization) changeRole(x *shell.Request) error {
	return h.onOrganization(x, "", "role-changed", func(ctx context.Context) error {
		id, err := x.ID()
		if err != nil {
			return err
		}
		return h.members.SetRole(ctx, x.Actor, id, account.Role(x.Form("role")))
	})
}

func (h *organization) removeMember(x *shell.Request) error {
	if !x.IsConfirmed() {
		who, err := h.memberName(x)
		if err != nil {
			return err
		}
		return x.Confirm(shell.Ask("Remove "+who+"?", "Remove",
			"This person immediately loses access to the rooms of your organization.",
			"If it is the person's only organization, the account is deleted.",
			"Tokens that this person created keep working until you revoke them.").Dangerous(), "/organization")
	}
	return h.onOrganization(x, "", "member-removed", func(ctx context.Context) error {
		id, err := x.ID()
		if err != nil {
			return err
		}
		return h.members.Remove(ctx, x.Actor, id)
	})
}

// memberName returns the e-mail address of the member in the path.
func (h *organization) memberName(x *shell.Request) (string, error) {
	ctx, stop := x.Wait()
	defer stop()
	id, err := x.ID()
	if err != nil {
		return "", err
	}
	list, err := h.members.List(ctx, x.Actor)
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

// invitedPage shows the link of an invitation once.
type invitedPage struct {
	Email  string
	Role   account.Role
	Link   string
	Mailed bool
}

func (h *organization) invite(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	role := account.Role(x.Form("role"))
	link, mailed, err := h.invitations.Invite(ctx, x.Actor, x.Form("email"), role)
	if err == nil {
		return x.Page("invited", invitedPage{x.Form("email"), role, link, mailed})
	}
	page, pageErr := h.organizationPage(ctx, x)
	if pageErr != nil {
		return pageErr
	}
	return refused(x, "organization", "email", page, err)
}

func (h *organization) uninvite(x *shell.Request) error {
	return h.onOrganization(x, "", "uninvited", func(ctx context.Context) error {
		id, err := x.ID()
		if err != nil {
			return err
		}
		return h.invitations.Revoke(ctx, x.Actor, id)
	})
}

func (h *organization) addHost(x *shell.Request) error {
	return h.onOrganization(x, "host", "host-added", func(ctx context.Context) error {
		_, err := h.hosts.Add(ctx, x.Actor, x.Form("host"))
		return err
	})
}

func (h *organization) verifyHost(x *shell.Request) error {
	return h.onOrganization(x, "", "host-verified", func(ctx context.Context) error {
		return h.hosts.Verify(ctx, x.Actor, x.Form("claimed"))
	})
}

func (h *organization) removeHost(x *shell.Request) error {
	if !x.IsConfirmed() {
		return x.Confirm(shell.Ask("Remove "+x.Form("claimed")+"?", "Remove",
			"No new room can be published under this host until you verify it again.").Dangerous(), "/organization")
	}
	return h.onOrganization(x, "", "host-removed", func(ctx context.Context) error {
		return h.hosts.Remove(ctx, x.Actor, x.Form("claimed"))
	})
}
