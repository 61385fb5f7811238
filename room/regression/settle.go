package regression

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/mark"
	"github.com/proofline/proofline/room/pgroom"
)

// How long a node waits until the others have compared a restored or replaced database, before it appends:
// peersPatience for the nodes that the database lists, and forgotPatience, if the database has lost this node, for
// others that it may have lost.
const (
	peersPatience  = 5 * time.Second
	forgotPatience = time.Second
)

// Settler compares a database that was restarted, restored or replaced with what this node has seen. It is not
// safe for concurrent use.
type Settler struct {
	from    Sources
	log     *slog.Logger
	restore func() error      // restores what the database, according to the marks, has lost besides entries
	onHold  func(slug string) // a room has been held

	progress
}

// progress is this node's progress with a database that it has not appended to yet.
type progress struct {
	incarnation pglog.Incarnation
	began       time.Time
	compared    bool // compared with the marks of this node
	refused     bool // the database is an old primary, and that has been logged
}

// NewSettler returns a settler. After a database was compared, restore is called to store what it has lost besides
// entries. onHold is called with each room that is held.
func NewSettler(from Sources, log *slog.Logger, restore func() error, onHold func(slug string)) *Settler {
	return &Settler{from: from, log: log, restore: restore, onHold: onHold}
}

// Settle compares the database with what this node has seen, and waits until the other nodes have done so. Until
// then no node appends: a node that is slightly behind another would not notice that entries published by the
// other are missing. If there is no error, rooms may continue.
func (s *Settler) Settle(ctx context.Context) error {
	found, err := s.from.Logs.Incarnation(ctx)
	if err != nil {
		return err
	}
	if s.began.IsZero() || found != s.incarnation {
		s.progress = progress{incarnation: found, began: time.Now()}
	}
	accepted, hasAccepted := s.from.Logs.Accepted()
	if hasAccepted && found.IsBehind(accepted) {
		if !s.refused {
			s.log.Error("database is an old primary: not appending to it", "timeline", found.Timeline,
				"newer", accepted.Timeline)
		}
		s.refused = true
		return pglog.ErrUnsettled
	}
	if !s.compared {
		if err := s.compare(ctx); err != nil {
			return err
		}
		if err := s.restore(); err != nil {
			return err
		}
		s.compared = true
	}
	peers, err := s.from.Logs.Compared(ctx, s.from.Marks.Node(), found)
	if err != nil {
		return err
	}
	waited := time.Since(s.began)
	forgot := hasAccepted && !peers.Known
	if !peers.Settled && (len(peers.Silent) > 0 && waited < peersPatience || forgot && waited < forgotPatience) {
		return pglog.ErrUnsettled
	}
	if peers.Settled {
		peers.Silent = nil // other nodes will find the database compared
	}
	if len(peers.Silent) > 0 {
		s.log.Warn("servers did not compare the database in time; rooms continue without them",
			"servers", peers.Silent, "waited", waited.Round(time.Millisecond))
	}
	if err := s.from.Logs.Settle(ctx, s.from.Marks.Node(), peers.Silent); err != nil {
		return err
	}
	s.from.Logs.Accept(found)
	if hasAccepted {
		s.log.Info("compared the database with the marks of this server", "timeline", found.Timeline,
			"took", waited.Round(time.Millisecond))
	}
	return nil
}

// compare holds every room whose log in the database does not continue this node's mark.
func (s *Settler) compare(ctx context.Context) error {
	seen := s.from.Marks.All()
	ids := make([]uuid.UUID, 0, len(seen))
	for log := range seen {
		ids = append(ids, pgroom.RoomID(log.Slug))
	}
	elsewhere := s.from.Marks.Slugs()
	for _, slug := range elsewhere {
		ids = append(ids, pgroom.RoomID(slug))
	}
	found, err := s.from.Logs.Marks(ctx, ids)
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(elsewhere, func(slug string) bool {
		_, ok := found[pgroom.RoomID(slug)]
		return ok
	})
	for log, m := range seen {
		id := pgroom.RoomID(log.Slug)
		has, ok := found[id]
		if !ok {
			missing = append(missing, log.Slug)
			continue
		}
		if _, err := s.compareOne(ctx, log, m, has, s.from.Marks.Name()); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		missing = slices.Compact(missing)
		s.log.Error("database lacks rooms that this server has seen: "+
			"check that it is the right one; if it is meant to be new, remove the directory of marks, and give another "+
			"place in object storage",
			"rooms", len(missing), "first", missing[:min(len(missing), 5)])
	}
	return nil
}

// Compare compares a mark from elsewhere with the database, and holds the room if its log does not continue the mark:
// then it returns false. It is safe for concurrent use. The error is [pglog.ErrUnsettled] while the database itself is
// being compared.
func (s *Settler) Compare(ctx context.Context, log mark.Log, m pglog.Mark) (continues bool, err error) {
	if err := s.isSettled(ctx); err != nil {
		return false, err
	}
	id := pgroom.RoomID(log.Slug)
	found, err := s.from.Logs.Marks(ctx, []uuid.UUID{id})
	if err != nil {
		return false, err
	}
	has, ok := found[id]
	if !ok {
		return false, nil
	}
	if err := s.isSettled(ctx); err != nil { // what was read may be of another database
		return false, err
	}
	return s.compareOne(ctx, log, m, has, mark.RemoteName)
}

// isSettled returns [pglog.ErrUnsettled] unless the database is the one that was compared.
func (s *Settler) isSettled(ctx context.Context) error {
	now, err := s.from.Logs.Incarnation(ctx)
	if accepted, ok := s.from.Logs.Accepted(); err == nil && (!ok || now != accepted) {
		return pglog.ErrUnsettled
	}
	return err
}

// compareOne holds a room if its log does not continue the mark, and returns false then.
func (s *Settler) compareOne(ctx context.Context, log mark.Log, seen, has pglog.Mark, by string) (bool, error) {
	id := pgroom.RoomID(log.Slug)
	root := has.Root
	if has.Size > seen.Size {
		var err error
		if root, _, err = s.from.Logs.Growth(ctx, id, 0, seen.Size); err != nil && !errors.Is(err, pglog.ErrNotFound) {
			return false, err
		}
	}
	if has.Size >= seen.Size && root == seen.Root {
		return true, nil
	}
	signer, _, err := s.from.signer(ctx, log.Slug)
	if err != nil && !errors.Is(err, keys.ErrMasterKey) {
		return false, err
	}
	if err != nil || signer.KeyHash() != log.Key {
		return true, nil //nolint:nilerr // another room of this name; a wrong master key is reported when it is loaded
	}
	s.log.Error("database lost entries: a room lacks some that were published", "room", log.Slug, "seen_by", by,
		"size", has.Size, "root", has.Root, "shown_size", seen.Size, "shown_root", seen.Root)
	if err := s.from.Logs.Hold(ctx, id, seen, by); err != nil {
		return false, err
	}
	s.onHold(log.Slug)
	return false, nil
}

// MissingRoom returns the regression of a room that the database does not have; nil: the marks do not know it
// either.
func MissingRoom(marks *mark.Store, slug string) *Regression {
	if !marks.Knows(slug) {
		return nil
	}
	g := &Regression{Since: time.Now(), By: mark.RemoteName}
	for log, m := range marks.All() {
		if log.Slug == slug && m.Size > g.Had.Size {
			g.Had, g.By = m, marks.Name()
		}
	}
	g.Has.Root = new(audit.Tree).Root()
	return g
}
