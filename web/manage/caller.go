package manage

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"

	"github.com/proofline/proofline/console/account"
)

// OrganizationHeader names the organization in which a token acts. Only the server's own token can
// act in several.
const OrganizationHeader = "Proofline-Organization"

// callers identifies the senders of requests.
type callers struct {
	tokens        *account.Tokens        // nil: only the server's token is valid
	organizations *account.Organizations // nil if tokens is nil
	token         *[sha256.Size]byte     // hash of the server's token; nil: it has none
}

func newCallers(accounts *account.Accounts, serverToken string) callers {
	var c callers
	if accounts != nil {
		c.tokens, c.organizations = accounts.Tokens, accounts.Organizations
	}
	if serverToken != "" {
		sum := sha256.Sum256([]byte(serverToken))
		c.token = &sum
	}
	return c
}

// actor returns the actor for the request's token.
func (a callers) actor(r *http.Request) (account.Actor, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token == "" || !strings.EqualFold(scheme, "Bearer") {
		return account.Actor{}, ErrToken
	}
	slug := r.Header.Get(OrganizationHeader)
	if a.isServer(token) {
		return a.serverActor(r.Context(), slug)
	}
	if a.tokens == nil {
		return account.Actor{}, ErrToken
	}
	actor, err := a.tokens.Authenticate(r.Context(), token)
	if errors.Is(err, account.ErrToken) {
		return account.Actor{}, ErrToken
	}
	if err != nil || slug == "" {
		return actor, err
	}
	o, err := a.organizations.BySlug(r.Context(), slug)
	if errors.Is(err, account.ErrNotFound) || err == nil && o.ID != actor.Org {
		return account.Actor{}, ErrOrganization
	}
	return actor, err
}

// isServer reports whether token is the server's token. It compares hashes, so that timing reveals
// neither the token nor its length.
func (a callers) isServer(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return a.token != nil && subtle.ConstantTimeCompare(sum[:], a.token[:]) == 1
}

func (a callers) serverActor(ctx context.Context, slug string) (account.Actor, error) {
	if slug == "" {
		return account.ServerActor(account.MainOrg), nil
	}
	if a.organizations == nil {
		return account.Actor{}, ErrOrganization
	}
	o, err := a.organizations.BySlug(ctx, slug)
	if errors.Is(err, account.ErrNotFound) {
		return account.Actor{}, ErrOrganization
	}
	return account.ServerActor(o.ID), err
}
