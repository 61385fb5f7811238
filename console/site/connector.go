package site

import (
	"context"
	"encoding/base64"
	"errors"
	"math"
	"regexp"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/site/pgsite"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
)

const (
	nodeSize      = 16              // bytes of a node's id
	maxNodes      = 2000            // of an organization
	maxCounts     = 100             // of a node
	maxVersion    = 100             // bytes
	seenEvery     = 5 * time.Second // how exactly it is known when a node was heard of
	nodeForgotten = 24 * time.Hour  // after the latest report
)

// Node is what a connector says of itself.
type Node struct {
	ID      string            // 22 characters of base64url, random at the start of the process
	Site    string            // whose rules it goes by; empty when they are of no site of this server
	Serial  uint64            // of these rules
	Kind    string            // middleware, proxy, nginx or edge
	Version string            // of the program
	Counts  map[string]uint64 // what it did, by name, since it began
}

var (
	nameForm  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	kindForm  = regexp.MustCompile(`^(middleware|proxy|nginx|edge)$`)
	countForm = regexp.MustCompile(`^[a-z0-9_]{1,50}$`)
	printed   = regexp.MustCompile(`^[ -~]*$`)
)

// check says what is wrong with what a node says.
func (n *Node) check() error {
	var wrong []fairness.Problem
	add := func(isWrong bool, field, detail string) {
		if isWrong {
			wrong = append(wrong, fairness.Problem{Field: field, Detail: detail})
		}
	}
	id, err := base64.RawURLEncoding.Strict().DecodeString(n.ID)
	add(err != nil || len(id) != nodeSize, "node", "must be 22 characters of base64url")
	add(n.Site != "" && !nameForm.MatchString(n.Site), "site", wantName)
	add(n.Serial > math.MaxInt64, "serial", "must be less than 2^63")
	add(!kindForm.MatchString(n.Kind), "kind", "must be middleware, proxy, nginx or edge")
	add(len(n.Version) > maxVersion || !printed.MatchString(n.Version), "version", "must be at most 100 printable ASCII characters")
	add(len(n.Counts) > maxCounts, "counts", "must be at most 100")
	for name := range n.Counts {
		if !countForm.MatchString(name) {
			add(true, "counts", "must be named with a-z, 0-9 and _, at most 50 of them")
			break
		}
	}
	if len(wrong) > 0 {
		return &room.InvalidError{Problems: wrong}
	}
	return nil
}

// wantName says how sites are named.
const wantName = "must be 1 to 63 of a-z, 0-9 and -, and neither begin nor end with -"

// Seen notes that a connector of an organization has reported. Errors:
// [*room.InvalidError], [account.ErrTooMany].
func (s *Sites) Seen(ctx context.Context, org uuid.UUID, n Node) error {
	if err := n.check(); err != nil {
		return err
	}
	if n.Counts == nil {
		n.Counts = map[string]uint64{}
	}
	err := s.Store.Seen(ctx, org, pgsite.Connector{Node: n.ID, Site: n.Site, Serial: n.Serial, Kind: n.Kind, Version: n.Version, Counts: n.Counts}, seenEvery, maxNodes)
	if errors.Is(err, pgsite.ErrTooMany) {
		return account.ErrTooMany
	}
	return err
}

// connectedFor is how long after its latest report a connector counts as there.
const connectedFor = time.Minute

// Connector is a node that reports.
type Connector struct {
	Node
	Seen        time.Time // to 5 s
	IsConnected bool      // heard of in the last minute
	IsBehind    bool      // goes by older rules than those in force
}

// Connectors returns those that went by the rules of a site at their latest
// report, within a day, the latest heard of first. For the empty name they are
// those whose rules are of no site, such as rules in files.
func (s *Sites) Connectors(ctx context.Context, by account.Actor, name string) ([]Connector, error) {
	if !by.May(account.Read) {
		return nil, account.ErrForbidden
	}
	if name != "" {
		if _, err := s.site(ctx, by.Org, name); err != nil {
			return nil, err
		}
	}
	return asConnectors(s.Store.Connectors(ctx, by.Org, name, connectedFor))
}

// AllConnectors returns those of the actor's organization, whatever rules they
// go by.
func (s *Sites) AllConnectors(ctx context.Context, by account.Actor) ([]Connector, error) {
	if !by.May(account.Read) {
		return nil, account.ErrForbidden
	}
	return asConnectors(s.Store.AllConnectors(ctx, by.Org, connectedFor))
}

func asConnectors(stored []pgsite.Connector, err error) ([]Connector, error) {
	if err != nil {
		return nil, err
	}
	list := make([]Connector, len(stored))
	for i, c := range stored {
		list[i] = Connector{Node{c.Node, c.Site, c.Serial, c.Kind, c.Version, c.Counts}, c.Seen, c.IsRecent, c.IsBehind}
	}
	return list, nil
}

// Tidy forgets connectors that were not heard of for a day. Somebody calls it
// once in a while.
func (s *Sites) Tidy(ctx context.Context) error { return s.Store.ForgetConnectors(ctx, nodeForgotten) }
