package account

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/room/pgroom"
)

// MainOrg is the organization that every server has from the start. The server
// token acts in it unless told otherwise.
var MainOrg = pgroom.MainOrg

var (
	// ErrUnknownName is returned when a text names no scope or no role.
	ErrUnknownName = errors.New("no such name")
	// ErrForbidden is returned when an actor lacks the scope for what it wants.
	ErrForbidden = errors.New("your role, or the scopes of the token, do not allow this")
)

// Scope is a set of things that an [Actor] may do in its organization.
type Scope uint8

// What scopes allow. Each of the larger ones implies smaller ones: see [Scope.Closed].
const (
	Read    Scope = 1 << iota // see everything of the organization
	Pull                      // call people, as a backend does
	Operate                   // create, amend and control rooms, their brand and webhooks
	Admin                     // members, tokens, hosts and the organization itself
	Connect                   // read the rules of sites and report, as a connector does

	allScopes = Read | Pull | Operate | Admin | Connect
)

// scopeNames are the names in ascending order of power.
var scopeNames = []struct {
	scope Scope
	name  string
}{{Read, "read"}, {Pull, "pull"}, {Connect, "connect"}, {Operate, "operate"}, {Admin, "admin"}}

// Closed returns the scopes with those that they imply: admin implies all,
// operate implies connect, pull and read, and these imply nothing.
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

// Has tells whether all of the wanted scopes are in the set or implied by it.
func (s Scope) Has(wanted Scope) bool { return s.Closed()&wanted == wanted }

// List returns the names of the scopes in the set, without what they imply.
func (s Scope) List() []string {
	names := []string{}
	for _, n := range scopeNames {
		if s&n.scope != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

// String returns the names of the scopes in the set, such as "read operate", as
// [ParseScope] reads them.
func (s Scope) String() string { return strings.Join(s.List(), " ") }

// ParseScope reads names of scopes with white space between them. The empty
// text is the empty set.
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

// Role is what a person is in an organization.
type Role string

// The roles, from the most powerful one on.
const (
	Owner    Role = "owner"
	Operator Role = "operator"
	Viewer   Role = "viewer"
)

// ParseRole reads the name of a role.
func ParseRole(text string) (Role, error) {
	switch r := Role(text); r {
	case Owner, Operator, Viewer:
		return r, nil
	}
	return "", fmt.Errorf("role %q: %w: want owner, operator or viewer", text, ErrUnknownName)
}

// Scopes returns what a person of that role may do; nothing for an unknown one.
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

// Kind is what sort of thing an [Actor] is.
type Kind uint8

// The kinds of actors. The zero value is nobody.
const (
	Person Kind = iota + 1 // signed in to the console
	Token                  // of the management API
	Server                 // who holds the server's own token: may make organizations
)

// String returns "person", "token" or "server"; "nobody" for the zero value.
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

// ServerName is the name of the actor that holds the server's own token.
const ServerName = "server token"

// Actor is who does something, and in which organization. The zero value may
// do nothing.
type Actor struct {
	Kind    Kind
	ID      uuid.UUID // of the person or the token; zero for the server's own token
	Name    string    // e-mail address, name of the token, or [ServerName]
	Org     uuid.UUID
	Scopes  Scope
	Expires time.Time // of the token; zero: there is none, or it never ends
}

// May tells whether the actor has all of these scopes in its organization.
func (a Actor) May(s Scope) bool { return a.Kind != 0 && a.Scopes.Has(s) }

// ServerActor returns who holds the server's own token, acting in an organization.
func ServerActor(org uuid.UUID) Actor {
	return Actor{Kind: Server, Name: ServerName, Org: org, Scopes: allScopes}
}
