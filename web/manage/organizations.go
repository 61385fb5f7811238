package manage

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
)

// organizationJSON is an organization.
type organizationJSON struct {
	ID            uuid.UUID `json:"id"`
	Slug          string    `json:"slug"`
	Name          string    `json:"name"`
	RequireFactor bool      `json:"require_second_factor" doc:"Whether members need a second factor."`
	Created       time.Time `json:"created"`
	HasLogo       bool      `json:"has_logo" doc:"Whether the organization has a logo, which rooms without their own show."`
}

func newOrganizationJSON(o account.Organization) organizationJSON {
	return organizationJSON{o.ID, o.Slug, o.Name, o.RequireFactor, o.Created.UTC(), o.Logo != ""}
}

func shownOrganization(o account.Organization, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	return answer(newOrganizationJSON(o))
}

type organizationList struct {
	Organizations []organizationJSON `json:"organizations"`
}

type organizationInput struct {
	Slug string `json:"slug" need:"true" doc:"1 to 63 of a-z, 0-9 and -."`
	Name string `json:"name" need:"true"`
}

type organizationChangeInput struct {
	Name          *string `json:"name"`
	RequireFactor *bool   `json:"require_second_factor" doc:"Whether members need a second factor."`
	Logo          *string `json:"logo" doc:"Logo for rooms without their own: data URL of a PNG, JPEG or WebP image of at most 64 KiB. Empty: none."`
}

type ownerLinkInput struct {
	Email string `json:"email" doc:"E-mail address of the person that the link is for, who can set a new password with it. Empty: the link works for anyone who has it."`
}

// signInLinkInput is the request for a sign-in link.
type signInLinkInput struct {
	Email string `json:"email" doc:"E-mail address of the person that the link is for."`
}

// linkJSON has a one-time link, which is shown once.
type linkJSON struct {
	Link string `json:"link" doc:"One-time link. It is shown once."`
}

func (a *API) organizationRoutes() []route {
	const tag = "organizations"
	return []route{
		{
			method: http.MethodGet, path: "organization", scope: account.Read, name: "showOrganization", tag: tag,
			summary: "Show the organization that the token acts in", out: organizationJSON{},
			do: func(c *call) (reply, error) { return shownOrganization(a.Accounts.Organizations.Get(c, c.actor)) },
		},
		{
			method: http.MethodPatch, path: "organization", scope: account.Admin, name: "changeOrganization", tag: tag,
			summary: "Change name, logo or rules of the organization", in: organizationChangeInput{}, example: `{"name": "Example Tickets"}`,
			out: organizationJSON{}, do: a.changeOrganization,
		},
		{
			method: http.MethodGet, path: "organizations", scope: account.Read, name: "listOrganizations", tag: tag,
			summary: "List the organizations", more: "All of them with the server's token, otherwise only the token's own.", out: organizationList{}, do: a.listOrganizations,
		},
		{
			method: http.MethodPost, path: "organizations", scope: account.Admin, server: true, name: "createOrganization", tag: tag,
			summary: "Create an organization", more: "Only with the server's token.",
			in: organizationInput{}, example: `{"slug": "example", "name": "Example Tickets"}`,
			out: organizationJSON{}, status: http.StatusCreated, key: keyKept, do: a.createOrganization,
		},
		{
			method: http.MethodPost, path: "organizations/{organization}/owner-link", scope: account.Admin, server: true, name: "makeOwnerLink", tag: tag,
			summary: "Create a one-time link that makes a person an owner", more: "Only with the server's token. The link is valid for a day.",
			in: ownerLinkInput{}, blank: true, example: `{"email": "owner@example.com"}`, out: linkJSON{}, status: http.StatusCreated, key: keySecret, do: a.makeOwnerLink,
		},
		{
			method: http.MethodPost, path: "sign-in-links", scope: account.Admin, server: true, name: "makeSignInLink", tag: tag,
			summary: "Create a one-time link that lets a browser sign in despite failed attempts", more: "Only with the server's token. The link is valid for an hour, and signing in still requires the password.",
			in: signInLinkInput{}, example: `{"email": "owner@example.com"}`, out: linkJSON{}, status: http.StatusCreated, key: keySecret, do: a.makeSignInLink,
		},
	}
}

func (a *API) changeOrganization(c *call) (reply, error) {
	in, err := decode[organizationChangeInput](c)
	if err != nil {
		return reply{}, err
	}
	change := account.OrganizationChange{Name: in.Name, RequireFactor: in.RequireFactor}
	if in.Logo != nil {
		mediaType, image, err := room.ImageOf(*in.Logo)
		if err != nil {
			return reply{}, invalid.Field("logo", err.Error())
		}
		change.Logo = &account.Logo{MediaType: mediaType, Image: image}
	}
	return shownOrganization(a.Accounts.Organizations.Change(c, c.actor, change))
}

func (a *API) listOrganizations(c *call) (reply, error) {
	list, err := a.Accounts.Organizations.List(c, c.actor)
	if err != nil {
		return reply{}, err
	}
	out := organizationList{Organizations: make([]organizationJSON, len(list))}
	for i, o := range list {
		out.Organizations[i] = newOrganizationJSON(o)
	}
	return answer(out)
}

func (a *API) createOrganization(c *call) (reply, error) {
	in, err := decode[organizationInput](c)
	if err != nil {
		return reply{}, err
	}
	return shownOrganization(a.Accounts.Organizations.Create(c, c.actor, in.Slug, in.Name))
}

func (a *API) makeSignInLink(c *call) (reply, error) {
	in, err := decode[signInLinkInput](c)
	if err != nil {
		return reply{}, err
	}
	link, err := a.Accounts.SignInLinks.Make(c, c.actor, in.Email)
	if err != nil {
		return reply{}, err
	}
	return answer(linkJSON{link})
}

func (a *API) makeOwnerLink(c *call) (reply, error) {
	var in ownerLinkInput
	if len(c.body) > 0 {
		var err error
		if in, err = decode[ownerLinkInput](c); err != nil {
			return reply{}, err
		}
	}
	link, err := a.Accounts.Invitations.OwnerLink(c, c.actor, c.param("organization"), in.Email)
	if err != nil {
		return reply{}, err
	}
	return answer(linkJSON{link})
}
