package room

import (
	"context"
	"errors"
	"testing"

	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/session"
)

// TestAway kills the database, and then calls everything that needs it, before a tick has noticed: every
// error says that the database is unavailable.
func TestAway(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	rs := node(t, server.URL(), newMaster(t))
	r := create(t, rs, quick("away"))
	v, pass := admit(t, r)
	server.KillHard()
	again := func() error {
		j, err := r.Join(t.Context(), v.ticket)
		if err == nil {
			_, err = j.AppendReceipt(t.Context(), nil)
		}
		return err
	}
	for name, ask := range map[string]func() error{
		"touch":        func() error { _, err := r.Sessions.Touch(t.Context(), pass.Token); return err },
		"release":      func() error { _, err := r.Sessions.Release(t.Context(), pass.Token); return err },
		"join again":   again,
		"receipt":      func() error { _, err := r.Receipt(t.Context(), v.ticket); return err },
		"checkpoint":   func() error { _, err := r.Transcript.Checkpoint(t.Context()); return err },
		"another room": func() error { _, err := rs.Get(t.Context(), "another"); return err },
	} {
		if err := ask(); !IsAway(err) {
			t.Errorf("%s: %v, want it to say that the database is away", name, err)
		}
	}
	if IsAway(nil) || IsAway(context.Canceled) || IsAway(session.ErrPass) || IsAway(errors.New("any")) {
		t.Error("other errors count as a database that is away")
	}
	server.Restart()
}
