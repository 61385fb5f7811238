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
	"github.com/proofline/proofline/internal/invalid"
)

const (
	nodeSize      = 16              // length of a node ID, in bytes
	maxNodes      = 2000            // maximum number of nodes per organization
	maxCounts     = 100             // maximum number of counts per node
	maxVersion    = 100             // bytes
	seenInterval  = 5 * time.Second // minimum time between writes for an unchanged node
	nodeForgotten = 24 * time.Hour  // time after the latest report
)

// Node is a connector's description of itself.
type Node struct {
	ID           string            // 22 characters of base64url, chosen at random when the process starts
	Site         string            // site whose rules it runs; empty: rules that belong to no site of this server
	RulesVersion uint64            // version of these rules
	Kind         string            // middleware, proxy, nginx or edge
	Version      string            // version of the program
	Counts       map[string]uint64 // counters since the process started
}

var (
	nameForm  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	kindForm  = regexp.MustCompile(`^(middleware|proxy|nginx|edge)$`)
	countForm = regexp.MustCompile(`^[a-z0-9_]{1,50}$`)
	printed   = regexp.MustCompile(`^[ -~]*$`)
)

// check returns an [*invalid.Error] that lists all invalid fields.
func (n *Node) check() error {
	var wrong invalid.List
	id, err := base64.RawURLEncoding.Strict().DecodeString(n.ID)
	wrong.Check(err == nil && len(id) == nodeSize, "node", "must be 22 characters of base64url")
	wrong.Check(n.Site == "" || nameForm.MatchString(n.Site), "site", wantName)
	wrong.Check(n.RulesVersion <= math.MaxInt64, "rules_version", "must be less than 2^63")
	wrong.Check(kindForm.MatchString(n.Kind), "kind", "must be middleware, proxy, nginx or edge")
	wrong.Check(len(n.Version) <= maxVersion && printed.MatchString(n.Version), "version",
		"must be at most 100 printable ASCII characters")
	wrong.Check(len(n.Counts) <= maxCounts, "counts", "must be at most 100")
	for name := range n.Counts {
		if !countForm.MatchString(name) {
			wrong.Add("counts", "must be named with 1 to 50 characters: a-z, 0-9 and _")
			break
		}
	}
	return wrong.Err()
}

// wantName is the error text for an invalid site name.
const wantName = "must be 1 to 63 of a-z, 0-9 and -, and neither begin nor end with -"

// Seen records a report from a connector. Errors: [*invalid.Error], [*account.LimitError].
func (s *Sites) Seen(ctx context.Context, org uuid.UUID, n Node) error {
	if err := n.check(); err != nil {
		return err
	}
	if n.Counts == nil {
		n.Counts = map[string]uint64{}
	}
	err := s.Store.Seen(ctx, org, pgsite.Connector{Node: n.ID, Site: n.Site, RulesVersion: n.RulesVersion, Kind: n.Kind,
		Version: n.Version, Counts: n.Counts}, seenInterval, maxNodes)
	if errors.Is(err, pgsite.ErrTooManyConnectors) {
		return &account.LimitError{Max: maxNodes, Objects: "connectors"}
	}
	return err
}

// connectedFor is how long a connector counts as connected after a report.
const connectedFor = time.Minute

// Connector is a node that has reported within a day.
type Connector struct {
	Node
	Seen        time.Time // time of the latest report, accurate to 5 s
	IsConnected bool      // reported in the last minute
	IsBehind    bool      // runs older rules than the current ones
}

// Connectors returns the connectors that run the rules of a site, latest report first. An empty name
// selects those whose rules belong to no site, such as rules in files.
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

// AllConnectors returns all connectors of the actor's organization.
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
		list[i] = Connector{Node{c.Node, c.Site, c.RulesVersion, c.Kind, c.Version, c.Counts}, c.Seen, c.IsRecent,
			c.IsBehind}
	}
	return list, nil
}

// Tidy deletes connectors that have not reported for a day. The server calls it regularly.
func (s *Sites) Tidy(ctx context.Context) error { return s.Store.ForgetConnectors(ctx, nodeForgotten) }
