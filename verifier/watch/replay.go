package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/vrf"
)

// together is the number of bundles fetched at once.
const together = 32

// replay recomputes the room from its entries. It is the oracle of its own state.
type replay struct {
	origin  string // origin of the log
	vkey    string
	tree    audit.Tree
	state   fairness.State
	parser  fairness.Parser
	broken  *breach  // first broken rule; later entries are only hashed
	open    []marker // first arrival of each window that is not frozen
	pending []marker // freeze of each window that is not drawn
	signers int      // number of cosigners of the current draw
	news    news
}

// breach is an entry that breaks a rule.
type breach struct {
	index uint64
	text  []byte
	why   string
}

// marker is an entry that another one should follow, such as a freeze.
type marker struct {
	window fairness.WindowIndex
	index  uint64
	text   []byte
	due    fairness.Time
}

// read replays up to the head. ErrMismatch means that the entries are not the signed ones; the next
// step then reads everything again.
func (w *Watcher) read(ctx context.Context, s *Step) error {
	r := &w.replay
	r.origin, r.vkey = w.head.Origin, w.vkey
	for r.tree.Size() < w.head.Size {
		if err := w.readSome(ctx); err != nil {
			if errors.Is(err, ErrMismatch) {
				w.forget()
			}
			return err
		}
	}
	if r.tree.Root() != w.head.Root {
		err := fmt.Errorf("%w: %d entries hash to %v, signed is %v", ErrMismatch, w.head.Size,
			r.tree.Root(), w.head.Root)
		w.forget()
		return err
	}
	if w.caughtUp {
		s.Events = r.news.lines(&r.state)
	} else {
		s.Events = []string{summary(&r.state)}
	}
	w.caughtUp, r.news = true, news{}
	return nil
}

func (w *Watcher) forget() { w.replay, w.caughtUp = replay{}, false }

// readSome replays the next bundles.
func (w *Watcher) readSome(ctx context.Context) error {
	var list []audit.Tile
	for next := w.replay.tree.Size() / audit.TileWidth; len(list) < together &&
		next*audit.TileWidth < w.head.Size; next++ {
		list = append(list, audit.Tile{Level: -1, Index: next,
			Width: int(min(audit.TileWidth, w.head.Size-next*audit.TileWidth))})
	}
	for i, b := range fetch(ctx, w.src, list) {
		if b.err != nil {
			return fmt.Errorf("read %s: %w", list[i].Path(), b.err)
		}
		index := list[i].Index * audit.TileWidth
		err := audit.SplitBundle(b.content, list[i].Width, func(text []byte) error {
			if index == w.replay.tree.Size() { // otherwise it has been read before
				w.replay.take(text)
			}
			index++
			return nil
		})
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrMismatch, list[i].Path(), err)
		}
	}
	return nil
}

type fetched struct {
	content []byte
	err     error
}

func fetch(ctx context.Context, src verifier.Source, list []audit.Tile) []fetched {
	results := make([]fetched, len(list))
	var group sync.WaitGroup
	for i, t := range list {
		group.Go(func() { results[i].content, results[i].err = src.Tile(ctx, t) })
	}
	group.Wait()
	return results
}

// take hashes and applies one entry.
func (r *replay) take(text []byte) {
	if r.broken == nil {
		r.apply(text)
	}
	r.tree.Append(audit.LeafHash(text))
}

func (r *replay) apply(text []byte) {
	e, err := r.parser.Parse(text)
	if err == nil {
		r.signers = 0
		err = r.state.Apply(e, r)
	}
	if room, ok := e.(*fairness.Room); ok && err == nil && (room.Origin != r.origin || room.LogKey != r.vkey) {
		err = fmt.Errorf("the room entry has the origin %s and the key %s, but this log is %s with the key %s",
			room.Origin, room.LogKey, r.origin, r.vkey)
	}
	if err != nil {
		r.broken = &breach{r.tree.Size(), bytes.Clone(text), err.Error()}
		return
	}
	r.mark(e, text)
	r.news.add(e, r)
}

// mark records which entries must follow.
func (r *replay) mark(e fairness.Entry, text []byte) {
	switch e := e.(type) {
	case *fairness.Arrive:
		if e.Seq == 0 {
			r.open = append(r.open, marker{window: e.Window, index: r.tree.Size(), text: bytes.Clone(text)})
		}
	case *fairness.Freeze:
		r.open = r.open[1:]
		due := e.Time
		if b := r.state.Policy().Beacon; b != nil {
			due = fairness.Time(b.Emitted(e.Round))
		}
		r.pending = append(r.pending, marker{e.Window, r.tree.Size(), bytes.Clone(text), due})
	case *fairness.Draw:
		r.pending = r.pending[1:]
	}
}

// Root implements [fairness.Oracle].
func (r *replay) Root() [fairness.HashSize]byte { return r.tree.Root() }

// VerifyProof implements [fairness.Oracle].
func (r *replay) VerifyProof(key [fairness.PublicKeySize]byte, alpha []byte,
	proof [fairness.ProofSize]byte) ([fairness.BetaSize]byte, error) {
	public, err := vrf.NewPublicKey(key[:])
	if err != nil {
		return [fairness.BetaSize]byte{}, err
	}
	return public.Verify(alpha, proof[:])
}

// VerifyCosignature implements [fairness.Oracle].
func (r *replay) VerifyCosignature(witness string, size uint64, root [fairness.HashSize]byte,
	c fairness.Cosignature) (fairness.Time, error) {
	seconds, err := audit.Checkpoint{Origin: r.state.Policy().Origin, Size: size,
		Root: root}.CosignedAt(witness, audit.Cosignature(c))
	if err == nil {
		r.signers++
	}
	return fairness.Time(seconds * 1000), err
}

// VerifyRound implements [fairness.Oracle].
func (r *replay) VerifyRound(b *fairness.Beacon, round uint64, signature []byte) error {
	return b.Verify(round, signature)
}

// VerifyCredential implements [fairness.Oracle].
func (r *replay) VerifyCredential(v *credential.Verifier, s credential.Subject, c credential.Credential) error {
	return v.Verify(s, c)
}
