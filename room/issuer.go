package room

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room/setting"
)

// Issuer is the server's own issuer of credentials. It knows of rooms what is public.
type Issuer interface {
	// Key returns the public key, in hex, for a method of a room whose configuration has one of [setting.OwnKeys] for
	// it. It creates the key if necessary.
	Key(slug string, m credential.Method) (string, error)
	// Lacks says what the server lacks to confirm visitors of new rooms with one of [setting.OwnKeys], and how to get
	// it; empty: nothing.
	Lacks(key string) string
	// Proof returns what visitors need for a method of a room, and where an account is; empty: it confirms nobody.
	Proof(slug string, m credential.Method) (p setting.Proof, at string)
	// Page returns the URL of the page on which visitors are confirmed for a method of a room.
	Page(slug, method string) string
}

// Keys that stand for those of the server's own issuer while a configuration is checked.
var (
	standInSigned = "58" + strings.Repeat("66", 31) // the base point
	standInBlind  = "80" + strings.Repeat("00", 254) + "01"
)

// withStandIns replaces keys of the server's own issuer, which do not exist before the room.
func (c Config) withStandIns() Config {
	c.Methods = slices.Clone(c.Methods)
	for i := range c.Methods {
		switch m := &c.Methods[i]; {
		case !setting.IsOwnKey(m.Key):
		case m.Kind == credential.Blind:
			m.Key = standInBlind
		case m.Kind == credential.Signed:
			m.Key = standInSigned
		}
	}
	return c
}

// ownKeys lists methods with the key of an issuer of the server, which is nil if it has none.
func (c Config) ownKeys(of Issuer) (problems invalid.List) {
	for i, m := range c.Methods {
		key := fmt.Sprintf("methods[%d].key", i)
		switch {
		case !setting.IsOwnKey(m.Key):
		case of == nil:
			problems.Add(key, "is "+m.Key+", but this server runs no issuer: give an issuer's key")
		case of.Lacks(m.Key) != "":
			problems.Add(key, "is "+m.Key+", but "+of.Lacks(m.Key))
		case setting.IsSignedOnly(m.Key) && m.Kind == credential.Blind:
			problems.Add(key, "is "+m.Key+", which only a signed method can have")
		}
	}
	return problems
}

// withKeysOf gives methods the keys and the pages of the server's own issuer.
func (c Config) withKeysOf(of Issuer) (_ Config, err error) {
	c.Methods, c.Issuers = slices.Clone(c.Methods), slices.Clone(c.Issuers)
	for i := range c.Methods {
		m := &c.Methods[i]
		if !setting.IsOwnKey(m.Key) {
			continue
		}
		if m.Key, err = of.Key(c.Slug, *m); err != nil {
			return c, err
		}
		if _, ok := c.Settings.Issuer(m.Name); !ok {
			c.Issuers = append(c.Issuers, m.Name+" "+of.Page(c.Slug, m.Name))
		}
	}
	return c, nil
}

// Confirmation is a lane that a visitor's page can join with credentials: a proof of work, the confirmation of an
// issuer, or both.
type Confirmation struct {
	Lane   fairness.Lane
	Method credential.Method // of the issuer; without a name: the lane needs none
	Issuer setting.Issuer    // with the page on which it confirms visitors
	Work   credential.Method // without a name: the lane needs none
}

// MoreLots lists the confirmations that give a ticket of a lane one more lot each, for methods that it has not shown,
// as far as the room takes more of them and knows their issuers.
func MoreLots(s *Snapshot, settings *Settings, lane fairness.Lane, methods []string) (list []Confirmation) {
	if s.Door == nil {
		return nil
	}
	for _, m := range s.Door.Methods {
		from, known := settings.Issuer(m.Name)
		if isSpent := m.Limit > 0 && m.Taken >= m.Limit; known && !isSpent && slices.Contains(methods, m.Name) {
			list = append(list, Confirmation{Lane: lane, Method: m.Method, Issuer: from})
		}
	}
	return list
}

// Confirmations lists the lanes that need credentials, and that visitors' pages can join.
func Confirmations(s *Snapshot, settings *Settings) (list []Confirmation) {
	if s.Door == nil {
		return nil
	}
	for _, l := range s.Lanes {
		c, needed, ok := Confirmation{Lane: l.Name}, 0, true
		for _, m := range s.Door.Methods {
			switch {
			case !slices.Contains(l.Needs, m.Name):
				continue
			case m.Kind == credential.Work:
				ok, c.Work = ok && c.Work.Name == "", m.Method
			default:
				var known bool
				c.Issuer, known = settings.Issuer(m.Name)
				ok, c.Method = ok && known && c.Method.Name == "", m.Method
			}
			needed++
		}
		if ok && needed > 0 {
			list = append(list, c)
		}
	}
	return list
}
