package manage

import (
	"net/http"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room/branding"
)

func newOrganization(o account.Organization) wire.Organization {
	return wire.Organization{
		ID: o.ID, Slug: o.Slug, Name: o.Name, RequireFactor: o.RequireFactor, Created: o.Created.UTC(),
		HasLogo: o.Logo != "",
	}
}

func shownOrganization(o account.Organization, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	return answer(newOrganization(o))
}

// organizations serves organizations.
type organizations struct {
	organizations *account.Organizations
	signInLinks   *account.SignInLinks
	invitations   *account.Invitations
}

func (a organizations) routes() []route {
	const tag = "organizations"
	return []route{
		{
			method: http.MethodGet, path: "organization", scope: account.Read, name: "showOrganization", tag: tag,
			summary: "Show the organization that the token acts in", out: wire.Organization{},
			do: func(c *call) (reply, error) { return shownOrganization(a.organizations.Get(c, c.actor)) },
		},
		{
			method: http.MethodPatch, path: "organization", scope: account.Admin, name: "changeOrganization", tag: tag,
			summary: "Change name, logo or rules of the organization", in: wire.OrganizationChangeInput{},
			example: `{"name": "Example Tickets"}`,
			out:     wire.Organization{}, do: a.changeOrganization,
		},
		{
			method: http.MethodGet, path: "organizations", scope: account.Read, name: "listOrganizations", tag: tag,
			summary: "List the organizations",
			more:    "All of them with the server's token, otherwise only the token's own.",
			out:     wire.OrganizationList{},
			do:      a.listOrganizations,
		},
		{
			method: http.MethodPost, path: "organizations", scope: account.Admin, server: true,
			name: "createOrganization", tag: tag,
			summary: "Create an organization", more: "Only with the server's token.",
			in: wire.OrganizationInput{}, example: `{"slug": "example", "name": "Example Tickets"}`,
			out: wire.Organization{}, status: http.StatusCreated, key: keyKept, do: a.createOrganization,
		},
		{
			method: http.MethodPost, path: "organizations/{organization}/owner-link", scope: account.Admin,
			server: true, name: "makeOwnerLink", tag: tag,
			summary: "Create a one-time link that makes a person an owner",
			more:    "Only with the server's token. The link is valid for a day.",
			in:      wire.OwnerLinkInput{}, blank: true, example: `{"email": "owner@example.com"}`, out: wire.Link{},
			status: http.StatusCreated, key: keySecret, do: a.makeOwnerLink,
		},
		{
			method: http.MethodPost, path: "sign-in-links", scope: account.Admin, server: true, name: "makeSignInLink",
			tag:     tag,
			summary: "Create a one-time link that lets a browser sign in despite failed attempts",
			more:    "Only with the server's token. The link is valid for an hour, and signing in still requires the password.",
			in:      wire.SignInLinkInput{}, example: `{"email": "owner@example.com"}`, out: wire.Link{},
			status: http.StatusCreated, key: keySecret, do: a.makeSignInLink,
		},
	}
}

func (a organizations) changeOrganization(c *call) (reply, error) {
	in, err := decode[wire.OrganizationChangeInput](c)
	if err != nil {
		return reply{}, err
	}
	change := account.OrganizationChange{Name: in.Name, RequireFactor: in.RequireFactor}
	if in.Logo != nil {
		mediaType, image, err := branding.ImageOf(*in.Logo)
		if err != nil {
			return reply{}, invalid.Field("logo", err.Error())
		}
		change.Logo = &account.Logo{MediaType: mediaType, Image: image}
	}
	return shownOrganization(a.organizations.Change(c, c.actor, change))
}

func (a organizations) listOrganizations(c *call) (reply, error) {
	list, err := a.organizations.List(c, c.actor)
	if err != nil {
		return reply{}, err
	}
	out := wire.OrganizationList{Organizations: make([]wire.Organization, len(list))}
	for i, o := range list {
		out.Organizations[i] = newOrganization(o)
	}
	return answer(out)
}

func (a organizations) createOrganization(c *call) (reply, error) {
	in, err := decode[wire.OrganizationInput](c)
	if err != nil {
		return reply{}, err
	}
	return shownOrganization(a.organizations.Create(c, c.actor, in.Slug, in.Name))
}

func (a organizations) makeSignInLink(c *call) (reply, error) {
	in, err := decode[wire.SignInLinkInput](c)
	if err != nil {
		return reply{}, err
	}
	link, err := a.signInLinks.Make(c, c.actor, in.Email)
	return reply{body: wire.Link{Link: link}}, err
}

func (a organizations) makeOwnerLink(c *call) (reply, error) {
	var in wire.OwnerLinkInput
	if len(c.body) > 0 {
		var err error
		if in, err = decode[wire.OwnerLinkInput](c); err != nil {
			return reply{}, err
		}
	}
	link, err := a.invitations.OwnerLink(c, c.actor, c.param("organization"), in.Email)
	return reply{body: wire.Link{Link: link}}, err
}
