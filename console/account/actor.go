package account

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/room/pgroom"
)

// MainOrg is the organization that every server starts with. The server token acts in it by
// default.
var MainOrg = pgroom.MainOrg

var (
	// ErrUnknownName is returned for an unknown scope or role.
	ErrUnknownName = errors.New("unknown name")
	// ErrForbidden is returned when an actor lacks the required scope.
	ErrForbidden = errors.New("your role, or the scopes of the token, do not allow this")
)

// Scope is a set of permissions of an [Actor] in its organization.
type Scope uint8

// The scopes. Larger ones imply smaller ones: see [Scope.Closed].
const (
	Read    Scope = 1 << iota // read everything in the organization
	Pull                      // call visitors, for a backend that pulls
	Operate                   // create, change and control rooms, their branding and webhooks
	Admin                     // manage members, tokens, hosts and the organization itself
	Connect                   // read site rules and send reports, for a connector

	allScopes = Read | Pull | Operate | Admin | Connect
)

// scopeNames lists the names in ascending order of power.
var scopeNames = []struct {
	scope Scope
	name  string
}{{Read, "read"}, {Pull, "pull"}, {Connect, "connect"}, {Operate, "operate"}, {Admin, "admin"}}

// Closed returns the set with all implied scopes: admin implies all others, and operate implies
// connect, pull and read.
func (s Scope) Closed() Scope {
	s &= allScopes
	if s&Admin != 0 {
		return allScopes
	}
	if s&Operate != 0 {
		return s | Connect | Pull | Read
	}
	return s
}

// Has reports whether the set contains or implies all wanted scopes.
func (s Scope) Has(wanted Scope) bool { return s.Closed()&wanted == wanted }

// List returns the names of the scopes in the set, without implied ones.
func (s Scope) List() []string {
	names := []string{}
	for _, n := range scopeNames {
		if s&n.scope != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

// String returns the names of the scopes in the set, such as "read operate". [ParseScope] parses
// it.
func (s Scope) String() string { return strings.Join(s.List(), " ") }

// ParseScope parses scope names separated by white space. The empty text is the empty set.
func ParseScope(text string) (Scope, error) {
	var s Scope
next:
	for field := range strings.FieldsSeq(text) {
		for _, n := range scopeNames {
			if n.name == field {
				s |= n.scope
				continue next
			}
		}
		return 0, fmt.Errorf("scope %q: %w: want read, pull, connect, operate or admin", field, ErrUnknownName)
	}
	return s, nil
}

// Role is a person's role in an organization.
type Role string

// The roles, most powerful first.
const (
	Owner    Role = "owner"
	Operator Role = "operator"
	Viewer   Role = "viewer"
)

// ParseRole parses the name of a role.
func ParseRole(text string) (Role, error) {
	switch r := Role(text); r {
	case Owner, Operator, Viewer:
		return r, nil
	}
	return "", fmt.Errorf("role %q: %w: want owner, operator or viewer", text, ErrUnknownName)
}

// Scopes returns the scopes of the role, or none for an unknown role.
func (r Role) Scopes() Scope {
	switch r {
	case Owner:
		return allScopes
	case Operator:
		return Read | Pull | Connect | Operate
	case Viewer:
		return Read
	}
	return 0
}

// Kind is the kind of an [Actor].
type Kind uint8

// The kinds of actors. The zero value is no actor.
const (
	Person Kind = iota + 1 // signed in to the console
	Token                  // API token of an organization
	Server                 // holder of the server token, who may create organizations
)

// String returns "person", "token" or "server", or "nobody" for the zero value.
func (k Kind) String() string {
	switch k {
	case Person:
		return "person"
	case Token:
		return "token"
	case Server:
		return "server"
	}
	return "nobody"
}

// ServerName is the name of the actor that uses the server token.
const ServerName = "server token"

// Actor performs an operation in an organization. The zero value has no permissions.
type Actor struct {
	Kind    Kind
	ID      uuid.UUID // id of the person or the token; zero for the server token
	Name    string    // e-mail address, token name, or [ServerName]
	Org     uuid.UUID
	Scopes  Scope
	Expires time.Time // expiry of the token; zero: not a token
}

// May reports whether the actor has all of these scopes in its organization.
func (a Actor) May(s Scope) bool { return a.Kind != 0 && a.Scopes.Has(s) }

// ServerActor returns the holder of the server token, acting in an organization.
func ServerActor(org uuid.UUID) Actor {
	return Actor{Kind: Server, Name: ServerName, Org: org, Scopes: allScopes}
}
