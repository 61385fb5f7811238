// Package witness implements both sides of the C2SP witness protocol: the witness, which remembers
// the latest checkpoint of each log it follows and cosigns a newer one only with a proof that it
// continues the old one, and the log's client, which requests cosignatures and verifies each.
//
// The path of a request through the package:
//
//	log                          witness
//	Client.AddCheckpoint  ---->  Handler          limits, status codes
//	                             ParseRequest     400
//	                             Witness          404, 403, 400, 409, 422
//	                             Store            compare, write, sync, rename, sync
//	verify key, text, time <---- cosignature      only now
//
// A witness never contradicts a cosignature: the [Store] has the new checkpoint on disk before the
// cosignature is returned, a lock keeps other processes out, and requests for one log run one at a
// time. If the witness refuses a checkpoint that bears the log's signature, it keeps it as
// evidence.
//
// The witness cosigns with Ed25519. It accepts extension lines, as the specification requires, and
// does not check them.
//
//	https://c2sp.org/tlog-witness
//	https://c2sp.org/tlog-cosignature
//	https://c2sp.org/tlog-checkpoint
package witness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/internal/filelock"
)

var (
	// ErrMalformed is returned when a request is not in the form of the
	// protocol, or its old size is larger than its checkpoint. Status 400.
	ErrMalformed = errors.New("malformed request")
	// ErrUnsigned is returned when no known key of the log signed the checkpoint, or a signature is
	// invalid. Status 403.
	ErrUnsigned = errors.New("checkpoint not signed by a known key of the log")
	// ErrUnknownLog is returned when the witness does not follow the log. Status 404.
	ErrUnknownLog = errors.New("log not followed by the witness")
	// ErrInconsistent is returned when the request does not prove that the checkpoint continues the
	// one the witness has. Status 422.
	ErrInconsistent = errors.New("checkpoint does not continue the one the witness has")
	// ErrTooLarge is returned when a request is larger than MaxRequest. Status 413.
	ErrTooLarge = errors.New("request too large")
	// ErrUnavailable is returned when the witness cannot answer now; retrying later may help. Status
	// 429, 500 or above.
	ErrUnavailable = errors.New("witness unavailable")
	// ErrClock is returned when the clock of the witness is behind its latest cosignature. The log
	// sees it as an ErrUnavailable.
	ErrClock = errors.New("clock went backwards")
	// ErrState is returned when the store contains data that the witness did not write.
	ErrState = errors.New("state is damaged")
	// ErrLocked is returned when another process has the store open.
	ErrLocked = filelock.ErrLocked
	// ErrChanged is returned when the stored checkpoint is not the one to be replaced.
	ErrChanged = errors.New("state changed meanwhile")
	// ErrAnswer is returned by the client when an answer violates the protocol or its cosignature does
	// not verify.
	ErrAnswer = errors.New("invalid answer from the witness")
)

// ConflictError is returned when the witness has a checkpoint of a different size than the old one
// of the request. Status 409.
type ConflictError struct {
	Size uint64 // size that the witness has and needs a proof from; 0: none
}

// Error includes the size that the witness has.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("the witness has a checkpoint of size %d", e.Size)
}

const (
	// MaxStepBack is how far the clock may be set back before the witness stops cosigning. Until the
	// clock catches up, cosignatures repeat the latest time.
	MaxStepBack = time.Minute

	// maxWait is how long a request waits for earlier ones on the same log.
	maxWait = 5 * time.Second
)

// Witness cosigns checkpoints. It is safe for concurrent use.
type Witness struct {
	key   Key
	store *Store
	now   func() time.Time
	log   *slog.Logger
	logs  atomic.Pointer[Logs]

	mu    sync.Mutex               // guards turns
	turns map[string]chan struct{} // by origin; full while a request uses the state of that log
}

// New returns a witness that follows no logs yet. The store must not have been used with another
// key.
func New(key Key, store *Store, now func() time.Time, log *slog.Logger) *Witness {
	w := &Witness{key: key, store: store, now: now, log: log, turns: map[string]chan struct{}{}}
	w.Follow(Logs{})
	return w
}

// Key returns the public key.
func (w *Witness) Key() audit.Witness { return w.key.Witness }

// Follow replaces the set of followed logs. The state of a log that is left out stays in the store.
func (w *Witness) Follow(logs Logs) { w.logs.Store(&logs) }

// AddCheckpoint cosigns a checkpoint. Errors are ErrMalformed, ErrUnsigned,
// ErrUnknownLog, ErrInconsistent, ErrUnavailable, a *ConflictError, and those
// of the store.
//
// https://c2sp.org/tlog-witness#add-checkpoint
func (w *Witness) AddCheckpoint(ctx context.Context, r Request) (audit.Cosignature, error) {
	offered, err := w.open(r.Checkpoint)
	if err != nil {
		return audit.Cosignature{}, err
	}
	if r.Old > offered.Size {
		return audit.Cosignature{}, fmt.Errorf("%w: old size %d is larger than the checkpoint's, %d", ErrMalformed,
			r.Old, offered.Size)
	}
	done, err := w.turn(ctx, offered.Origin)
	if err != nil {
		return audit.Cosignature{}, err
	}
	defer done()
	latest, err := w.latest(offered.Origin)
	if err != nil {
		return audit.Cosignature{}, err
	}
	if latest.Size == offered.Size && latest.Root != offered.Root && latest.signed != nil {
		w.keep(fork, latest, offered)
	}
	if r.Old != latest.Size {
		return audit.Cosignature{}, &ConflictError{latest.Size}
	}
	if err := audit.VerifyConsistency(latest.Checkpoint, offered.Checkpoint, r.Proof); err != nil {
		if latest.Size > 0 && latest.Size < offered.Size {
			w.keep(unproven, latest, offered)
		}
		return audit.Cosignature{}, fmt.Errorf("%w: %w", ErrInconsistent, err)
	}
	return w.cosign(latest, offered)
}

// cosign stores the new state and then returns the cosignature.
func (w *Witness) cosign(latest, offered head) (audit.Cosignature, error) {
	now := w.now().Unix()
	switch step := latest.time - now; {
	case step == 0 && latest.text == offered.text:
		return latest.cosignature, nil // already cosigned in this second
	case now < 1 || step > int64(MaxStepBack/time.Second):
		return audit.Cosignature{}, fmt.Errorf("%w: %w: now is %d, the latest cosignature is from %d",
			ErrUnavailable, ErrClock, now, latest.time)
	}
	c := w.key.cosign(offered.text, max(now, latest.time))
	if err := w.store.Swap(offered.Origin, latest.signed,
		append(bytes.Clone(offered.signed), c.Line(w.key.Name())...)); err != nil {
		return audit.Cosignature{}, fmt.Errorf("cosign %s at %d: %w", offered.Origin, offered.Size, err)
	}
	w.log.Debug("cosigned", "log", offered.Origin, "size", offered.Size, "old", latest.Size)
	return c, nil
}

// turn waits until no other request uses the log.
func (w *Witness) turn(ctx context.Context, origin string) (done func(), err error) {
	w.mu.Lock()
	turn, ok := w.turns[origin]
	if !ok {
		turn = make(chan struct{}, 1)
		w.turns[origin] = turn
	}
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: other requests for %s take too long", ErrUnavailable, origin)
	}
}

// head is a parsed signed checkpoint.
type head struct {
	audit.Checkpoint
	text        string // signed text: the checkpoint and any extension lines
	signed      []byte // the signed checkpoint with only the verified signatures; nil: none
	cosignature audit.Cosignature
	time        int64 // time of the cosignature, Unix seconds; 0: none
}

// open checks an offered checkpoint against the keys of its log.
func (w *Witness) open(signed []byte) (head, error) {
	end := bytes.LastIndex(signed, []byte("\n\n"))
	if end < 0 {
		return head{}, fmt.Errorf("%w: the checkpoint has no signatures", ErrMalformed)
	}
	checkpoint, err := parseCheckpoint(string(signed[:end+1]))
	if err != nil {
		return head{}, err
	}
	keys, ok := (*w.logs.Load())[checkpoint.Origin]
	if !ok {
		return head{}, fmt.Errorf("%w: %q", ErrUnknownLog, checkpoint.Origin)
	}
	n, err := note.Open(signed, note.VerifierList(keys...))
	var unsigned *note.UnverifiedNoteError
	var wrong *note.InvalidSignatureError
	switch {
	case errors.As(err, &unsigned), errors.As(err, &wrong):
		return head{}, fmt.Errorf("%w: %w", ErrUnsigned, err)
	case err != nil:
		return head{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return head{Checkpoint: checkpoint, text: n.Text, signed: verified(n)}, nil
}

// latest returns the checkpoint that the witness cosigned last; the empty tree if there is none.
func (w *Witness) latest(origin string) (head, error) {
	signed, err := w.store.Latest(origin)
	if err != nil {
		return head{}, err
	}
	if signed == nil {
		var empty audit.Tree
		return head{Checkpoint: audit.Checkpoint{Origin: origin, Root: empty.Root()}}, nil
	}
	n, err := note.Open(signed, note.VerifierList(w.key))
	if err != nil {
		return head{}, fmt.Errorf("%w: checkpoint of %s: %w", ErrState, origin, err)
	}
	c, ok := w.key.Cosignature(n)
	checkpoint, err := parseCheckpoint(n.Text)
	if err != nil || !ok || checkpoint.Origin != origin {
		return head{}, fmt.Errorf("%w: not a checkpoint of %s", ErrState, origin)
	}
	return head{checkpoint, n.Text, signed, c, c.Time()}, nil
}

// keep stores two checkpoints signed by the log as evidence. A failure is only logged, because it
// does not change the answer.
func (w *Witness) keep(kind Kind, latest, offered head) {
	root := offered.Root
	name := fmt.Sprintf("%s-%d-%x", kind, offered.Size, root[:8])
	isNew, err := w.store.Keep(offered.Origin, kind, name, latest.signed, offered.signed)
	switch {
	case err != nil:
		w.log.Error("cannot store evidence", "log", offered.Origin, "evidence", name, "error", err)
	case isNew && kind == fork:
		w.log.Error("FORK: the log signed two histories", "log", offered.Origin, "size", offered.Size, "evidence", name)
	case isNew:
		w.log.Warn("signed checkpoint without a proof that it continues the one before", "log", offered.Origin,
			"size", offered.Size, "old", latest.Size, "evidence", name)
	}
}
