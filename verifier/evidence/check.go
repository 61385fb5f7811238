package evidence

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier/ticket"
)

// Finding is the result of checking a file.
type Finding struct {
	Kind     Kind             `json:"kind"`
	Proof    bool             `json:"proof"` // proof of misbehaviour; otherwise an observation
	Origin   string           `json:"origin"`
	VKey     string           `json:"vkey"`
	Shown    []string         `json:"shown"`     // facts that follow from the room's key
	NotShown []string         `json:"not_shown"` // claims of the file's author, and questions left open
	First    audit.Checkpoint `json:"-"`
}

// Check checks a file against a key; an empty vkey means the key in the file. Errors are [ErrKey]
// and [ErrUnfounded].
func (e *Evidence) Check(vkey string) (*Finding, error) {
	if vkey != "" && vkey != string(e.VKey) {
		return nil, fmt.Errorf("%w: it names %.200q", ErrKey, string(e.VKey))
	}
	key, err := audit.ParseKey(string(e.VKey))
	if err != nil {
		return nil, fmt.Errorf("%w: key %.200q: %w", ErrUnfounded, string(e.VKey), err)
	}
	f := &Finding{Kind: e.Kind, VKey: string(e.VKey), Origin: key.Name()}
	if f.First, _, err = audit.OpenCheckpoint(e.First, key); err != nil {
		return nil, fmt.Errorf("%w: the first checkpoint: %w", ErrUnfounded, err)
	}
	if vkey == "" {
		f.NotShown = append(f.NotShown, "That this is the room's key: it comes from the file. Compare it with the key that the organizer publishes; with another key this file shows nothing about the room.")
	}
	check, ok := map[Kind]func(*Finding, note.Verifier) error{
		Fork: e.fork, Receipt: e.receipt, Shrink: e.shrink, Unproven: e.unproven,
		Violation: e.violation, LateFreeze: e.lateFreeze, MissingDraw: e.missingDraw,
	}[e.Kind]
	if !ok {
		return nil, fmt.Errorf("%w: unknown kind %.40q", ErrUnfounded, e.Kind)
	}
	if err := check(f, key); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnfounded, err)
	}
	if !f.Proof {
		f.NotShown = append(f.NotShown, "That the operator did wrong: a broken network, a stale copy or a wrong clock on the author's side look the same. Audit the room, and ask others what they saw.")
		if e.Observed != nil {
			f.NotShown = append(f.NotShown, fmt.Sprintf("What was seen, and when: at %s, %.500q.",
				formatTime(uint64(e.Observed.Time)), string(e.Observed.Detail)))
		}
	}
	return f, nil
}

func (f *Finding) show(format string, args ...any) {
	f.Shown = append(f.Shown, fmt.Sprintf(format, args...))
}

// part is a part of a file that only some kinds of evidence have.
type part string

const (
	partSecond  part = "second"
	partRoot    part = "root" // with the growth
	partEntry   part = "entry"
	partInstead part = "instead"
)

// only rejects parts other than those of this kind of evidence.
func (e *Evidence) only(allowed ...part) error {
	for _, p := range []struct {
		part
		isGiven bool
	}{
		{partSecond, len(e.Second) > 0}, {partRoot, e.Root != nil || e.Growth != nil},
		{partEntry, e.Entry != nil}, {partInstead, e.Instead != nil},
	} {
		if p.isGiven && !slices.Contains(allowed, p.part) {
			return fmt.Errorf("%q is not part of this kind of evidence", p.part)
		}
	}
	return nil
}

// second opens the second checkpoint.
func (e *Evidence) second(key note.Verifier) (audit.Checkpoint, error) {
	head, _, err := audit.OpenCheckpoint(e.Second, key)
	if err != nil {
		return head, fmt.Errorf("the second checkpoint: %w", err)
	}
	return head, nil
}

func (e *Evidence) fork(f *Finding, key note.Verifier) error {
	if err := e.only(partSecond, partRoot); err != nil {
		return err
	}
	p, err := open(string(e.VKey), e.First, e.Second)
	if err != nil {
		return err
	}
	f.Proof = true
	f.show("The key %s signed %d entries with the root %v.", key.Name(), p.small.Size, p.small.Root)
	if p.small.Size == p.large.Size {
		if p.small.Root == p.large.Root || e.Root != nil || e.Growth != nil {
			return errors.New("the checkpoints are the same")
		}
		f.show("The same key signed %d entries with the root %v.", p.large.Size, p.large.Root)
	} else {
		if e.Root == nil || *e.Root == p.small.Root {
			return errors.New("nothing shows that the smaller history is not a prefix of the larger")
		}
		other := audit.Checkpoint{Origin: p.small.Origin, Size: p.small.Size, Root: *e.Root}
		if err := audit.VerifyConsistency(other, p.large, e.Growth); err != nil {
			return err
		}
		f.show("The same key signed %d entries with the root %v. The first %d of them have the root %v.",
			p.large.Size, p.large.Root, p.small.Size, *e.Root)
	}
	f.show("So the first %d entries of the room are signed in two versions: two histories, of which different people were shown one each, or the one was replaced by the other.", p.small.Size)
	return nil
}

func (e *Evidence) receipt(f *Finding, key note.Verifier) error {
	if err := e.only(partSecond, partEntry, partInstead); err != nil {
		return err
	}
	head, err := e.second(key)
	if err != nil {
		return err
	}
	arrive, err := entry[*fairness.Arrive](f.First, e.Entry)
	if err != nil {
		return err
	}
	if err := included(head, e.Instead); err != nil {
		return err
	}
	if e.Entry.Index != e.Instead.Index || string(e.Entry.Entry) == string(e.Instead.Entry) {
		return errors.New("both histories have the same entry, or the entries have different indexes")
	}
	f.Proof = true
	f.show("The key %s signed a history of %d entries in which entry %d is the arrival of ticket %v.", key.Name(),
		f.First.Size, uint64(e.Entry.Index), arrive.Ticket)
	f.show("The same key signed a history of %d entries in which entry %d is %.120q.", head.Size,
		uint64(e.Instead.Index), []byte(e.Instead.Entry))
	f.show("So the operator signed the history of this visitor's receipt, and also one that contradicts it: the arrival was dropped, moved or replaced.")
	return nil
}

func (e *Evidence) shrink(f *Finding, key note.Verifier) error {
	if err := e.only(partSecond); err != nil {
		return err
	}
	head, err := e.second(key)
	if err != nil {
		return err
	}
	if head.Size >= f.First.Size || e.Observed == nil {
		return errors.New("the second checkpoint is not the smaller one, or the observation is missing")
	}
	f.show("The key %s signed a history of %d entries, and one of %d.", key.Name(), f.First.Size, head.Size)
	f.NotShown = append(f.NotShown,
		"That the two contradict each other: the smaller may be a prefix of the larger, shown late.")
	return nil
}

func (e *Evidence) unproven(f *Finding, key note.Verifier) error {
	if err := e.only(partSecond); err != nil {
		return err
	}
	if len(e.Second) == 0 || e.Observed == nil {
		return errors.New("the second checkpoint or the observation is missing")
	}
	f.show("The key %s signed a history of %d entries.", key.Name(), f.First.Size)
	if head, err := e.second(key); err == nil {
		f.show("It also signed one of %d entries.", head.Size)
		f.NotShown = append(f.NotShown, "Whether the one continues the other: the server did not prove it.")
	} else {
		f.NotShown = append(f.NotShown, "That what was shown later came from the operator: the key did not sign it.")
	}
	return nil
}

func (e *Evidence) violation(f *Finding, key note.Verifier) error {
	if err := e.only(partEntry); err != nil {
		return err
	}
	if e.Observed == nil {
		return errors.New("the observation with the broken rule is missing")
	}
	f.show("The key %s signed a history of %d entries.", key.Name(), f.First.Size)
	if e.Entry != nil {
		if err := included(f.First, e.Entry); err != nil {
			return err
		}
		f.show("In it, entry %d is %.120q.", uint64(e.Entry.Index), []byte(e.Entry.Entry))
	}
	f.NotShown = append(f.NotShown, "That this entry breaks a rule: that follows from all entries before it. Audit the transcript; the operator cannot take the entry back.")
	return nil
}

// observedWindow starts a finding about a window.
func (e *Evidence) observedWindow(f *Finding, key note.Verifier) error {
	if err := e.only(partEntry); err != nil {
		return err
	}
	if e.Observed == nil || e.Observed.Window == nil {
		return errors.New("the observation with its window is missing")
	}
	f.show("The key %s signed a history of %d entries.", key.Name(), f.First.Size)
	return nil
}

func (e *Evidence) lateFreeze(f *Finding, key note.Verifier) error {
	if err := e.observedWindow(f, key); err != nil {
		return err
	}
	if e.Entry != nil {
		arrive, err := entry[*fairness.Arrive](f.First, e.Entry)
		if err != nil {
			return err
		}
		if uint64(arrive.Window) != uint64(*e.Observed.Window) {
			return errors.New("the arrival is of another window")
		}
		f.show("In it, ticket %v arrived in window %d.", arrive.Ticket, arrive.Window)
	}
	f.NotShown = append(f.NotShown, fmt.Sprintf("That window %d, over since %s, was not frozen then. When its freeze comes, its time in the transcript says how late it was.", uint64(*e.Observed.Window), formatTime(uint64(e.Observed.Since))))
	return nil
}

func (e *Evidence) missingDraw(f *Finding, key note.Verifier) error {
	if err := e.observedWindow(f, key); err != nil {
		return err
	}
	if e.Entry != nil {
		freeze, err := entry[*fairness.Freeze](f.First, e.Entry)
		if err != nil {
			return err
		}
		if uint64(freeze.Window) != uint64(*e.Observed.Window) {
			return errors.New("the freeze is of another window")
		}
		f.show("In it, window %d was frozen at %s, to be drawn with round %d.", freeze.Window,
			formatTime(uint64(freeze.Time)), freeze.Round)
	}
	f.NotShown = append(f.NotShown, fmt.Sprintf("That window %d, which could be drawn since %s, was not drawn then.",
		uint64(*e.Observed.Window), formatTime(uint64(e.Observed.Since))))
	return nil
}

// entry returns a proven entry of the given type.
func entry[E fairness.Entry](head audit.Checkpoint, p *ticket.Proven) (found E, err error) {
	if err := included(head, p); err != nil {
		return found, err
	}
	e, err := fairness.ParseEntry(p.Entry)
	if err != nil {
		return found, err
	}
	found, ok := e.(E)
	if !ok {
		return found, fmt.Errorf("entry %d is %s", uint64(p.Index), fairness.KindOf(e))
	}
	return found, nil
}

func included(head audit.Checkpoint, p *ticket.Proven) error {
	if p == nil {
		return errors.New("an entry is missing")
	}
	return audit.VerifyInclusion(head, uint64(p.Index), audit.LeafHash(p.Entry), p.Path)
}
