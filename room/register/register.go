// Package register keeps the server's log of rooms: a public log with an entry for each room, appended in the same
// transaction as the room's first entry, and one for its end. Package audit/roomlog has its format and rules.
//
// The log is one of those in audit/pglog, so any number of nodes append to it. It is guarded like a transcript: a
// node marks how far it has seen the log, and when the database lacks entries, nothing is appended or shown until
// they are back. Then no room can be created either.
package register

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/audit/roomlog"
	"github.com/proofline/proofline/internal/timing"
	"github.com/proofline/proofline/internal/traces"
	"github.com/proofline/proofline/room/evidence"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/mark"
	"github.com/proofline/proofline/room/meter"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/regression"
)

var (
	// ErrNotFound is returned when the log, or the requested part of it, does not exist.
	ErrNotFound = errors.New("not in the log of rooms")
	// ErrHeld is returned when no room can be created because the log lacks entries that were seen.
	ErrHeld = errors.New("the server's log of rooms lacks entries, so no room can be created: run proofline recover /rooms")
	// ErrOther is returned when a room is imported that the log knows with another key or another transcript.
	ErrOther = errors.New("the log of rooms has a room of this name with another key or another transcript")
	// ErrOwn is returned when a room is imported whose origin has a host of this server.
	ErrOwn = errors.New("the room's name has a host of this server, but its log of rooms has no such room")
	// ErrNameless is returned when the log does not exist yet, and the address that it is named after is unknown.
	ErrNameless = errors.New("this server has no log of rooms yet, and the address that the log is named after is unknown")
	// ErrTaken is returned when the log has had a room with this address, even if the database has none.
	ErrTaken = errors.New("the log of rooms already has a room with this address: choose another slug")
)

// appearInterval is how often a node looks for the log until the first room is created.
const appearInterval = 2 * time.Second

// Options configures [New].
type Options struct {
	Logs      *pglog.Store
	Store     *pgroom.Store
	MasterKey *keys.MasterKey
	Marks     *mark.Store
	Witnesses []evidence.Witness // cosign the log's checkpoints
	Origin    string             // name of a new log
	Meter     *meter.Meter
	Tracer    *traces.Tracer
	Log       *slog.Logger
	Now       func() time.Time
}

// Register is the log of rooms. It is safe for concurrent use.
type Register struct {
	o         Options
	witnesses *evidence.Witnesses
	forks     evidence.Forks
	covered   atomic.Uint64 // size up to which this node has marked the log
	isSuspect atomic.Bool   // the database's log may differ from what this node has read
	isHeld    atomic.Bool   // the log lacks entries that were seen

	mu     sync.Mutex // guards the fields below; held while the log is appended to
	guard  *regression.Guard
	signer note.Signer
	vkey   string
	log    *pglog.Log // nil: must be read again
	list   *roomlog.List
}

// New returns the log of rooms of a server. Nothing is stored before the first room.
func New(o Options) *Register {
	return &Register{o: o, witnesses: evidence.NewWitnesses(o.Witnesses)}
}

// Run has the witnesses cosign the log until ctx ends.
func (g *Register) Run(ctx context.Context) {
	target, err := g.target(ctx)
	for err != nil {
		if !timing.Sleep(ctx, appearInterval) {
			return
		}
		target, err = g.target(ctx)
	}
	evidence.Cosign(ctx, target, g.o.Witnesses, func(ctx context.Context) (uint64, error) {
		head, err := g.head(ctx)
		return head.Size, err
	})
}

// target returns the log as evidence needs it, or [ErrNotFound] before the first room.
func (g *Register) target(ctx context.Context) (*evidence.Target, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.load(ctx); err != nil {
		return nil, err
	}
	return g.targetLocked(), nil
}

func (g *Register) targetLocked() *evidence.Target {
	return &evidence.Target{ID: pgroom.RegisterID, Slug: pgroom.RegisterName, Origin: g.signer.Name(), Signer: g.signer,
		Logs: g.o.Logs, Holder: g.guard, Forks: &g.forks, Meter: g.o.Meter, Tracer: g.o.Tracer,
		Log: g.o.Log, Now: g.o.Now}
}

// open reads the key, or returns [ErrNotFound] before the first room.
func (g *Register) open(ctx context.Context) error {
	if g.guard != nil {
		return nil
	}
	missing := regression.MissingRoom(g.o.Marks, pgroom.RegisterName)
	r, err := g.o.Store.Register(ctx)
	switch {
	case errors.Is(err, pgroom.ErrNotFound) && missing != nil:
		return missing
	case errors.Is(err, pgroom.ErrNotFound):
		return ErrNotFound
	case err != nil:
		return err
	}
	if g.signer, g.vkey, err = keys.OpenRegister(g.o.MasterKey, r); err != nil {
		return fmt.Errorf("open the log of rooms: %w", err)
	}
	name := mark.Log{Slug: pgroom.RegisterName, Key: g.signer.KeyHash()}
	g.guard = regression.NewGuard(pgroom.RegisterID, name, g.o.Logs, g.o.Marks, g.o.Log)
	return nil
}

// create stores the key of a new log.
func (g *Register) create(ctx context.Context) error {
	if g.o.Origin == "" {
		return ErrNameless
	}
	return g.o.Store.InsertRegister(ctx, keys.GenerateRegister(g.o.MasterKey, g.o.Origin), g.o.Logs.Create)
}

// load reads the whole log, if it has not been read, and holds it if it lacks entries that were seen. Errors:
// [ErrNotFound], a [*regression.Regression], and those of the database.
func (g *Register) load(ctx context.Context) error {
	err := g.read(ctx)
	_, isHeld := errors.AsType[*regression.Regression](err)
	if isHeld || err == nil {
		g.isHeld.Store(isHeld)
	}
	return err
}

// IsHeld reports whether this node has noticed that the log lacks entries that were seen.
func (g *Register) IsHeld() bool { return g.isHeld.Load() }

// read does what load does.
func (g *Register) read(ctx context.Context) error {
	if err := g.open(ctx); err != nil {
		return err
	}
	if g.isSuspect.Swap(false) {
		g.log = nil
	}
	if g.log != nil {
		return nil
	}
	if g.guard.Regression() != nil {
		if mayBeBack, err := g.guard.MayBeBack(ctx); err != nil || !mayBeBack {
			return cmp.Or(err, g.guard.Err())
		}
	}
	g.covered.Store(0)
	wanted, err := g.guard.Wanted(ctx)
	if err != nil {
		return err
	}
	log, list := g.o.Logs.Open(pgroom.RegisterID, g.signer.Name(), g.signer), &roomlog.List{}
	if err := log.Tail(ctx, func(text []byte) error {
		wanted.Note(log.Size(), log.Root)
		return list.Add(text)
	}); err != nil {
		return fmt.Errorf("read the log of rooms: %w", err)
	}
	wanted.Note(log.Size(), log.Root)
	if err := g.guard.Check(ctx, wanted, pglog.Mark{Size: log.Size(), Root: log.Root()}); err != nil {
		return err
	}
	if !g.guard.IsMarked() && log.Size() > 0 {
		g.consult(ctx, log.Size())
		if err := g.guard.Err(); err != nil {
			return err
		}
	}
	if err := errors.Join(g.o.Logs.Confirm(ctx), g.guard.Lift(ctx, wanted)); err != nil {
		return fmt.Errorf("read the log of rooms: %w", err)
	}
	g.guard.Heal(log.Size())
	g.log, g.list = log, list
	g.note()
	return nil
}

// consult asks the witnesses whether they have seen more of a log that is new to this node.
func (g *Register) consult(ctx context.Context, size uint64) {
	known := make([]string, len(g.o.Witnesses))
	for i, w := range g.o.Witnesses {
		known[i] = w.Key.String()
	}
	g.witnesses.Consult(ctx, *g.targetLocked(), known, size)
}

// note marks the log as far as this node has read it.
func (g *Register) note() {
	g.guard.Note(pglog.Mark{Size: g.log.Size(), Root: g.log.Root()})
	g.covered.Store(g.log.Size())
}

// Suspect makes this node compare the log with its marks before it uses or shows the log again.
func (g *Register) Suspect() {
	g.isSuspect.Store(true)
	g.covered.Store(0)
}

// apply applies an entry of another node.
func (g *Register) apply(text []byte) error { return g.list.Add(text) }

// add adds an entry to a batch.
func (g *Register) add(b *pglog.Batch, e roomlog.Entry) error {
	e.Time = b.Now
	text := e.Append(nil)
	if err := g.list.Add(text); err != nil {
		return err
	}
	b.Publish()
	return b.Add(text)
}

// Created is a room about to be created.
type Created struct {
	Log         *pglog.Log // its empty log
	VKey        string
	IsRehearsal bool
	Read        pglog.Reader             // reads entries of the room's log that are there already
	Build       func(*pglog.Batch) error // adds the room's first entry
}

// Create stores the first entry of a room together with its entry in the log of rooms. Errors: [ErrTaken], [ErrHeld],
// those of Read and Build, and those of the database; nothing is stored then, unless the connection to the database
// broke.
func (g *Register) Create(ctx context.Context, c Created) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.begin(ctx)
	if err != nil {
		return err
	}
	e := roomlog.Entry{Kind: roomlog.Room, VKey: c.VKey}
	if c.IsRehearsal {
		e.Kind = roomlog.Rehearsal
	}
	err = g.o.Logs.AppendAll(ctx, pglog.Addition{Log: c.Log, Read: c.Read, Build: func(b *pglog.Batch) error {
		err := c.Build(b)
		e.Root = b.Root()
		return err
	}}, pglog.Addition{Log: g.log, Read: g.apply, Build: func(b *pglog.Batch) error {
		origin := originOf(c.VKey)
		if g.list.Of(origin) != nil {
			return fmt.Errorf("%w: %s", ErrTaken, origin)
		}
		if err := g.addFirst(b); err != nil {
			return err
		}
		return g.add(b, e)
	}})
	return g.done(err)
}

// begin loads the log, and creates it if it does not exist.
func (g *Register) begin(ctx context.Context) error {
	err := g.load(ctx)
	if errors.Is(err, ErrNotFound) {
		if err = g.create(ctx); err == nil {
			err = g.load(ctx)
		}
	}
	if _, isLacking := errors.AsType[*regression.Regression](err); isLacking {
		return fmt.Errorf("%w: %w", ErrHeld, err)
	}
	return err
}

// addFirst adds the entry that begins the log, if it is empty.
func (g *Register) addFirst(b *pglog.Batch) error {
	if g.list.Size() > 0 {
		return nil
	}
	return g.add(b, roomlog.Entry{Kind: roomlog.Begin, VKey: g.vkey})
}

// Imported is a room that another server has created and ended.
type Imported struct {
	VKey   string
	First  audit.Hash // leaf hash of its first entry
	End    pglog.Mark // its whole transcript
	IsLost bool       // it has ended because entries are lost
}

// Import records that the server takes over a room. Recording it again changes nothing. Errors: [ErrOther], [ErrOwn],
// [ErrNameless], [ErrHeld], and those of the database.
func (g *Register) Import(ctx context.Context, i Imported) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	hosts, err := g.o.Store.Hosts(ctx)
	if err != nil {
		return err
	}
	origin := originOf(i.VKey)
	own := fmt.Errorf("%w: %s", ErrOwn, origin)
	if err := g.load(ctx); errors.Is(err, ErrNotFound) && g.isOwn(origin, hosts) {
		return own // and no log gets the name
	}
	if err := g.begin(ctx); err != nil {
		return err
	}
	_, err = g.log.Append(ctx, g.apply, func(b *pglog.Batch) error {
		if r := g.list.Of(origin); r != nil {
			has := Imported{VKey: r.VKey, First: r.First, End: pglog.Mark{Size: r.Size, Root: r.Root}, IsLost: r.IsLost}
			if has != i {
				return fmt.Errorf("%w: %s", ErrOther, r.Origin)
			}
			return nil
		}
		// The address would confirm a room that nobody has created there, and never be free for another one.
		if g.isOwn(origin, hosts) {
			return own
		}
		if err := g.addFirst(b); err != nil {
			return err
		}
		end := roomlog.Entry{Kind: roomlog.End, Room: g.list.Size(), Size: i.End.Size, Root: i.End.Root}
		if i.IsLost {
			end.Kind = roomlog.Lost
		}
		if err := g.add(b, roomlog.Entry{Kind: roomlog.Import, VKey: i.VKey, Root: i.First}); err != nil {
			return err
		}
		return g.add(b, end)
	})
	return g.done(err)
}

// isOwn reports whether an origin has a host that this server publishes rooms at, or has published them at: one of
// hosts, or that of its log of rooms or of a room that it created.
func (g *Register) isOwn(origin string, hosts []string) bool {
	own := append([]string{hostOf(g.o.Origin)}, hosts...)
	if g.list != nil {
		own = append(own, hostOf(g.signer.Name()))
		for _, r := range g.list.Rooms() {
			if !r.IsImported {
				own = append(own, hostOf(r.Origin))
			}
		}
	}
	return slices.Contains(own, hostOf(origin))
}

// hostOf returns the host in an origin, in lower case and without port.
func hostOf(origin string) string {
	host, _, _ := strings.Cut(origin, "/")
	return strings.TrimSuffix(strings.ToLower((&url.URL{Host: host}).Hostname()), ".")
}

// done marks what was appended. After an error it has the log read again, because entries may be stored or not.
func (g *Register) done(err error) error {
	if err != nil {
		g.log = nil
		return fmt.Errorf("log of rooms: %w", err)
	}
	g.note()
	return nil
}

// End records that a room has ended, with the size and root of its transcript. Recording it again changes nothing.
func (g *Register) End(ctx context.Context, origin string, m pglog.Mark) error {
	return g.end(ctx, origin, roomlog.Entry{Kind: roomlog.End, Size: m.Size, Root: m.Root})
}

// Lost records that a room's operator has ended it because part of its transcript is lost; m is what is left.
func (g *Register) Lost(ctx context.Context, origin string, m pglog.Mark) error {
	return g.end(ctx, origin, roomlog.Entry{Kind: roomlog.Lost, Size: m.Size, Root: m.Root})
}

func (g *Register) end(ctx context.Context, origin string, e roomlog.Entry) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.load(ctx); err != nil {
		return err
	}
	_, err := g.log.Append(ctx, g.apply, func(b *pglog.Batch) error {
		r := g.list.Of(origin)
		switch {
		case r == nil:
			return fmt.Errorf("%w: %s", ErrNotFound, origin)
		case r.Ended != 0:
			return nil
		}
		e.Room = r.Index
		return g.add(b, e)
	})
	return g.done(err)
}

// Checkpoint returns the published checkpoint.
func (g *Register) Checkpoint(ctx context.Context) ([]byte, error) {
	signed, err := g.o.Logs.Checkpoint(ctx, pgroom.RegisterID)
	if errors.Is(err, pglog.ErrNotFound) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	head, err := audit.UnverifiedCheckpoint(signed)
	if err != nil {
		return nil, fmt.Errorf("read the log of rooms: %w", err)
	}
	return signed, g.cover(ctx, head.Size)
}

// head returns the published checkpoint as a struct; zero: there is none.
func (g *Register) head(ctx context.Context) (head audit.Checkpoint, err error) {
	signed, err := g.Checkpoint(ctx)
	if errors.Is(err, ErrNotFound) {
		return head, nil
	}
	if err == nil {
		head, err = audit.UnverifiedCheckpoint(signed)
	}
	return head, err
}

// cover marks the log up to size, which this node is about to show.
func (g *Register) cover(ctx context.Context, size uint64) error {
	if g.covered.Load() >= size {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.load(ctx); err != nil {
		return err
	}
	if g.log.Size() >= size {
		g.note()
		return nil
	}
	err := g.log.Tail(ctx, g.apply)
	if err == nil && g.log.IsHeld() {
		err = pglog.ErrHeld
	}
	if err == nil {
		err = g.o.Logs.Confirm(ctx)
	}
	return g.done(err)
}

// Tile returns a tile or entry bundle, or [ErrNotFound] when the log does not contain all of it.
func (g *Register) Tile(ctx context.Context, t audit.Tile) ([]byte, error) {
	b, err := g.o.Logs.Tile(ctx, pgroom.RegisterID, t)
	if errors.Is(err, pglog.ErrNotFound) {
		return nil, ErrNotFound
	}
	return b, err
}

// VKey returns the key that verifies the log, or [ErrNotFound] before the first room.
func (g *Register) VKey(ctx context.Context) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.open(ctx)
	return g.vkey, err
}

// originOf returns the origin in a room's key.
func originOf(vkey string) string {
	key, err := audit.ParseKey(vkey)
	if err != nil {
		return ""
	}
	return key.Name()
}
