package room

import (
	"context"
	"errors"
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
// peersPatience for nodes that the database names, forgotPatience for nodes that it may have lost, if it has
// lost this one.
const (
	peersPatience  = 5 * time.Second
	forgotPatience = time.Second
)

// settling is this node's progress with a database that it has not appended to yet.
type settling struct {
	incarnation pglog.Incarnation
	began       time.Time
	compared    bool // compared with the marks of this node
	refused     bool // the database is an old primary, and this is logged
}

// settle compares a database that was restarted, restored or replaced with what this node has seen, and waits
// until the other nodes have done so. Until then no node appends: a node that is slightly behind another
// would not notice that entries are missing which the other has published. If there is no error, rooms may
// continue.
func (rs *Rooms) settle(ctx context.Context) error {
	found, err := rs.Logs.Incarnation(ctx)
	if err != nil {
		return err
	}
	s := &rs.settling
	if s.began.IsZero() || found != s.incarnation {
		*s = settling{incarnation: found, began: time.Now()}
	}
	accepted, hasAccepted := rs.Logs.Accepted()
	if hasAccepted && found.IsBehind(accepted) {
		if !s.refused {
			rs.Log.Error("database is an old primary: not appending to it", "timeline", found.Timeline,
				"newer", accepted.Timeline)
		}
		s.refused = true
		return pglog.ErrUnsettled
	}
	if !s.compared {
		if err := rs.compare(ctx); err != nil {
			return err
		}
		// Not under ctx, because it may take longer than a tick.
		if err := remind(rs.ctx, rs.Marks, rs.Options.Rooms, rs.Log); err != nil {
			return err
		}
		s.compared = true
	}
	peers, err := rs.Logs.Compared(ctx, rs.Marks.Node(), found)
	if err != nil {
		return err
	}
	waited := time.Since(s.began)
	forgot := hasAccepted && !peers.Known
	if !peers.Settled && (len(peers.Silent) > 0 && waited < peersPatience || forgot && waited < forgotPatience) {
		return pglog.ErrUnsettled
	}
	if peers.Settled {
		peers.Silent = nil // they will find the database compared
	}
	if len(peers.Silent) > 0 {
		rs.Log.Warn("servers did not compare the database in time; rooms continue without them",
			"servers", peers.Silent, "waited", waited.Round(time.Millisecond))
	}
	if err := rs.Logs.Settle(ctx, rs.Marks.Node(), peers.Silent); err != nil {
		return err
	}
	rs.Logs.Accept(found)
	if hasAccepted {
		rs.Log.Info("compared the database with the marks of this server", "timeline", found.Timeline,
			"took", waited.Round(time.Millisecond))
	}
	return nil
}

// compare holds every room whose log in the database does not continue this node's mark.
func (rs *Rooms) compare(ctx context.Context) error {
	seen := rs.Marks.All()
	ids := make([]uuid.UUID, 0, len(seen))
	for log := range seen {
		ids = append(ids, pgroom.RoomID(log.Slug))
	}
	found, err := rs.Logs.Marks(ctx, ids)
	if err != nil {
		return err
	}
	var missing []string
	for log, m := range seen {
		id := pgroom.RoomID(log.Slug)
		has, ok := found[id]
		if !ok {
			missing = append(missing, log.Slug)
			continue
		}
		if err := rs.compareOne(ctx, log, m, has); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		rs.Log.Error("database lacks rooms that this server has seen: "+
			"check that it is the right one; if it is meant to be new, remove the directory of marks",
			"rooms", len(missing), "first", missing[:min(len(missing), 5)])
	}
	return nil
}

// compareOne holds a room if its log does not continue the mark.
func (rs *Rooms) compareOne(ctx context.Context, log mark.Log, seen, has pglog.Mark) error {
	id := pgroom.RoomID(log.Slug)
	root := has.Root
	if has.Size > seen.Size {
		var err error
		if root, _, err = rs.Logs.Growth(ctx, id, 0, seen.Size); err != nil && !errors.Is(err, pglog.ErrNotFound) {
			return err
		}
	}
	if has.Size >= seen.Size && root == seen.Root {
		return nil
	}
	record, err := rs.Options.Rooms.Get(ctx, log.Slug)
	if err != nil {
		return err
	}
	sealed, err := rs.Options.Rooms.Keys(ctx, id)
	if err != nil {
		return err
	}
	k, err := keys.Open(rs.MasterKey, record, sealed)
	if err != nil || k.Log.KeyHash() != log.Key {
		return nil //nolint:nilerr // another room of this name; a wrong master key is reported when it is loaded
	}
	rs.Log.Error("database went back: a room lacks entries that this server has published", "room", log.Slug,
		"size", has.Size, "root", has.Root, "shown_size", seen.Size, "shown_root", seen.Root)
	if err := rs.Logs.Hold(ctx, id, seen, rs.Marks.Name()); err != nil {
		return err
	}
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	if r, ok := rs.loaded[log.Slug]; ok {
		r.adrift.Store(true)
		r.queue.signal()
	}
	return nil
}

// missing returns the error for a room that the database does not have.
func (rs *Rooms) missing(slug string) error {
	if !rs.Marks.Knows(slug) {
		return ErrNotFound
	}
	g := &Regression{Since: time.Now(), By: rs.Marks.Name()}
	for log, m := range rs.Marks.All() {
		if log.Slug == slug && m.Size > g.Had.Size {
			g.Had = m
		}
	}
	g.Has.Root = new(audit.Tree).Root()
	return g
}

// complete returns an error if the room is held; then no request about it may be answered.
func (r *Room) complete() error {
	if g := r.regression.Load(); g != nil {
		return g
	}
	return nil
}

// leaveTimeout limits how long a stop waits for the database.
const leaveTimeout = time.Second

// Leave tells the other nodes that this one has stopped. If the database does not store that, they wait a
// moment for this node at the next change of the database.
func (rs *Rooms) Leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	if err := rs.Logs.Leave(ctx, rs.Marks.Node()); err != nil {
		rs.Log.Warn("cannot tell the other servers that this one has stopped", "err", err)
	}
}

// ConfirmClock makes all servers follow the jump of the database's clock that they refuse.
func (rs *Rooms) ConfirmClock(ctx context.Context) error { return rs.Logs.ConfirmClock(ctx) }
