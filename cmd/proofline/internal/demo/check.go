package demo

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/proofline/proofline/cmd/proofline/internal/transcript"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/visitor"
)

// publishTimeout limits how long the server may take to publish the last entries.
const publishTimeout = 10 * time.Second

// inspector compares what the parts of a sale have seen.
type inspector struct {
	*sale
	windows      int // windows with arrivals
	replacements int // visitors called in place of no-shows
}

// visitors checks that the server's answers to the visitors agree.
func (i *inspector) visitors(ctx context.Context) error {
	key, err := i.passKey(ctx)
	if err != nil {
		return err
	}
	places := map[uint64]string{}
	for _, v := range i.crowd.people {
		i.checks.expect(v.settled, "ticket %s is neither admitted nor skipped", v.ticket)
		other, taken := places[v.place.Position]
		i.checks.expect(!taken, "%s and %s have the place %d", v.ticket, other, v.place.Position)
		inRange := v.place.Position >= 1 && v.place.Position <= uint64(len(i.crowd.people))
		i.checks.expect(inRange, "%s has the place %d", v.ticket, v.place.Position)
		places[v.place.Position] = v.ticket
		if v.habit != absent {
			i.checks.expect(v.pass.Position == v.place.Position,
				"%s has the place %d and a pass for %d", v.ticket, v.place.Position, v.pass.Position)
			i.checkPass(v, key)
		}
	}
	return nil
}

// passKey fetches the key with which a protected site verifies passes.
func (i *inspector) passKey(ctx context.Context) (ed25519.PublicKey, error) {
	var set struct {
		Keys []struct{ X string }
	}
	if _, err := i.room.visitor.Call(ctx, http.MethodGet, "/jwks.json", nil, &set); err != nil {
		return nil, err
	}
	if len(set.Keys) != 1 {
		return nil, fmt.Errorf("read pass key: %d keys, want 1", len(set.Keys))
	}
	key, err := base64.RawURLEncoding.DecodeString(set.Keys[0].X)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("read pass key: %q is not an Ed25519 key", set.Keys[0].X)
	}
	return key, nil
}

func (i *inspector) checkPass(v *person, key ed25519.PublicKey) {
	token, err := jwt.Parse(v.pass.Pass, func(*jwt.Token) (any, error) { return key, nil },
		jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithIssuer(i.room.URL), jwt.WithSubject(v.ticket),
		jwt.WithExpirationRequired())
	i.checks.expect(err == nil && token.Valid, "the pass of %s does not verify: %v", v.ticket, err)
}

// transcript compares the published transcript with the answers that visitors
// received.
func (i *inspector) transcript(ctx context.Context) error {
	t, err := i.published(ctx)
	if err != nil {
		return err
	}
	for _, v := range i.crowd.people {
		if err := t.CheckReceipt(&v.joined); err != nil {
			i.checks.expect(false, "%v", err)
		}
	}
	entries, err := parse(t.Entries)
	if err != nil {
		return err
	}
	i.checkEntries(entries)
	if i.checks.failures() == 0 {
		i.checks.Say("Every receipt verifies, and its arrival is in the published transcript at the index it names.")
	}
	return nil
}

// published waits until the whole transcript is published, and reads it.
func (i *inspector) published(ctx context.Context) (*transcript.Transcript, error) {
	for deadline := time.Now().Add(publishTimeout); ; {
		t, err := transcript.Read(ctx, i.room.URL, i.room.VKey)
		if err != nil || t.Checkpoint.Size == i.size {
			return t, err
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("only %d of %d entries are published after %s",
				t.Checkpoint.Size, i.size, publishTimeout)
		}
		if err := visitor.Sleep(ctx, watchInterval); err != nil {
			return nil, err
		}
	}
}

func parse(texts [][]byte) ([]fairness.Entry, error) {
	entries := make([]fairness.Entry, len(texts))
	for i, text := range texts {
		var err error
		if entries[i], err = fairness.ParseEntry(text); err != nil {
			return nil, fmt.Errorf("read entry %d: %w", i, err)
		}
	}
	return entries, nil
}

// checkEntries checks the number of entries of each kind, and compares places and
// admissions with the answers that visitors received.
func (i *inspector) checkEntries(entries []fairness.Entry) {
	kinds, places, admitted := map[fairness.Kind]int{}, map[string]uint64{}, map[string]bool{}
	for _, e := range entries {
		kinds[fairness.KindOf(e)]++
		switch e := e.(type) {
		case *fairness.Assign:
			places[e.Ticket.String()] = uint64(e.Position)
		case *fairness.Admit:
			admitted[e.Ticket.String()] = true
		}
	}
	for _, v := range i.crowd.people {
		i.checks.expect(places[v.ticket] == v.place.Position,
			"%s has the place %d, but the server answered %d", v.ticket, places[v.ticket], v.place.Position)
		i.checks.expect(admitted[v.ticket] == (v.habit != absent), "%s is admitted: %t", v.ticket, admitted[v.ticket])
	}
	n, missing := len(i.crowd.people), len(i.crowd.with(absent))
	for kind, want := range map[fairness.Kind]int{
		fairness.KindRoom: 1, fairness.KindArrive: n, fairness.KindAssign: n, fairness.KindAdmit: n - missing,
		fairness.KindSkip: missing, fairness.KindAmend: 3, fairness.KindEnd: 1, // amendments: message, pause, resume
	} {
		i.checks.expect(kinds[kind] == want, "the transcript has %d %s entries, not %d", kinds[kind], kind, want)
	}
	i.windows = kinds[fairness.KindFreeze]
	i.checks.expect(i.windows >= 2 && kinds[fairness.KindDraw] == i.windows,
		"%d windows are frozen and %d drawn", i.windows, kinds[fairness.KindDraw])
	i.replacements = replacements(entries)
	i.checks.expect(i.replacements > 0, "no visitor was called in place of a no-show")
}

// replacements returns how many visitors were called in place of no-shows: those
// beyond the number that the outflow alone allows.
func replacements(entries []fairness.Entry) (most int) {
	room, _ := entries[0].(*fairness.Room)
	var paused, pauseBegan fairness.Time
	isPaused := false
	for _, e := range entries {
		switch e := e.(type) {
		case *fairness.Amend:
			switch {
			case e.Change == fairness.ChangePause && !isPaused:
				pauseBegan, isPaused = e.Time, true
			case e.Change == fairness.ChangeResume:
				paused, isPaused = paused+e.Time-pauseBegan, false
			}
		case *fairness.Call:
			allowed := 1 + int64(e.Time-room.Starts-paused)*int64(room.Outflow.PerMinute)/60_000
			most = max(most, int(int64(e.Places())-allowed)) //nolint:gosec // both below 2^32
		}
	}
	return most
}
