package room

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/witness"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/evidence"
	"github.com/proofline/proofline/room/mark"
)

// patient is a witness that takes as long to respond as the request allows.
type patient struct{ scripted }

func (p patient) AddCheckpoint(ctx context.Context, old uint64, proof []audit.Hash, signed []byte) (audit.Cosignature, error) {
	<-ctx.Done()
	return p.scripted.AddCheckpoint(ctx, old, proof, signed)
}

// TestConsult starts a node that has no mark of a room: its witness decides whether the database can be
// trusted. After that the witness is not needed.
func TestConsult(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer func(size uint64) error
		isSlow bool
		held   bool
	}{
		{"the same", func(uint64) error { return nil }, false, false},
		{"nothing", func(uint64) error { return &witness.ConflictError{} }, false, false},
		{"less", func(size uint64) error {
			if size > 1 {
				return &witness.ConflictError{Size: 1}
			}
			return nil
		}, false, false},
		{"more", func(size uint64) error { return &witness.ConflictError{Size: size + 9} }, false, true},
		{"less of another", func(size uint64) error {
			if size > 1 {
				return &witness.ConflictError{Size: 1}
			}
			return fmt.Errorf("ask witness: %w", witness.ErrInconsistent)
		}, false, true},
		{"away", func(uint64) error { return witness.ErrUnavailable }, false, false},
		{"silent", func(uint64) error { return context.DeadlineExceeded }, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url, master, b, w := pgtest.URL(t), newMaster(t), newBeacon(t), newWitness(t, "one.example.org")
			asked := new(atomic.Int64)
			node := func(answer func(size uint64) error) *Rooms {
				cosigner := evidence.Cosigner(scripted(func(old uint64, _ []byte) (none audit.Cosignature, err error) {
					asked.Add(1)
					return none, answer(old)
				}))
				if c.isSlow {
					cosigner = patient{cosigner.(scripted)}
				}
				return start(t, connect(t, url), Options{MasterKey: master, Chains: []evidence.Chain{b.chain()}, Witnesses: []evidence.Witness{{Key: w.Key(), Cosigner: cosigner}}})
			}
			opens := time.Now().Add(24 * time.Hour)
			first := node(func(uint64) error { return witness.ErrUnavailable })
			r := create(t, first, Config{Slug: "known", Opens: &opens})
			if err := r.Amend(t.Context(), Amendment{Message: said("more than one entry")}); err != nil {
				t.Fatal(err)
			}
			if err := first.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			asked.Store(0)
			began := time.Now()
			second := node(c.answer)
			_, err := second.Get(t.Context(), "known")
			if (err != nil) != c.held || c.held && !errors.Is(err, ErrRegressed) {
				t.Errorf("the room: %v, want held %t", err, c.held)
			}
			if asked.Load() == 0 {
				t.Error("the witness was not asked")
			}
			if took := time.Since(began); took > 30*time.Second { // three seconds for a slow witness
				t.Errorf("the room was loaded after %v", took)
			}
			loaded, _ := second.find("known")
			if err := loaded.Pause(t.Context()); (err != nil) != c.held {
				t.Errorf("append: %v", err)
			}
		})
	}
}

// TestConsultOnce starts nodes that have a mark of a room, because they created it or saw it before. They ask
// no witness.
func TestConsultOnce(t *testing.T) {
	t.Parallel()
	url, master, b, w := pgtest.URL(t), newMaster(t), newBeacon(t), newWitness(t, "one.example.org")
	asked, marks := new(atomic.Int64), mark.Memory()
	node := func() *Rooms {
		cosigner := scripted(func(_ uint64, checkpoint []byte) (none audit.Cosignature, err error) {
			if bytes.Contains(checkpoint, []byte("/known\n")) { // and not of the log of rooms
				asked.Add(1)
			}
			return none, witness.ErrUnavailable
		})
		return start(t, connect(t, url), Options{MasterKey: master, Chains: []evidence.Chain{b.chain()},
			Witnesses: []evidence.Witness{{Key: w.Key(), Cosigner: cosigner}}, Marks: marks})
	}
	opens := time.Now().Add(24 * time.Hour)
	first := node()
	create(t, first, Config{Slug: "known", Opens: &opens})
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := node().Get(t.Context(), "known"); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the witness was asked %d times", n)
	}
}
