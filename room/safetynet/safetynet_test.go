package safetynet

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/room/projection"
	"github.com/proofline/proofline/room/sequence"
)

// TestMerge drops new sessions beyond the number that can be counted, and nothing else.
func TestMerge(t *testing.T) {
	t.Parallel()
	batch := []pendingReport{{Report: &Report{Node: uuid.New(), Shares: true, Started: newIDs(2), Active: newIDs(1), Ended: newIDs(3), TurnedAway: 1}}, {Report: &Report{Started: newIDs(4)}}}
	for f, want := range map[projection.UnqueuedCounts]int{{}: 6, {Active: 999_999}: 6, {Active: 1_000_000}: 0, {Started: 1_000_001}: 0} {
		all, isTurnedAway := merge(batch, f)
		if len(all.Started) != want || len(all.Nodes) != 1 || len(all.Active) != 1 || len(all.Ended) != 3 || !isTurnedAway {
			t.Errorf("%+v: %+v, %t", f, all, isTurnedAway)
		}
	}
}

// TestBatcherIsFull: the number of sessions waiting to be stored is limited, and more are accepted once they
// are stored.
func TestBatcherIsFull(t *testing.T) {
	t.Parallel()
	b := reportBatcher{isRunning: true} // with a slow database
	gone, leave := context.WithCancel(t.Context())
	leave()
	large := &Report{Started: newIDs(MaxSessions), Active: newIDs(MaxSessions), Ended: newIDs(MaxSessions)}
	added := 0
	for ; added <= maxQueuedSessions; added += large.size() {
		if _, err := b.add(gone, large); errors.Is(err, sequence.ErrBusy) {
			break
		}
	}
	if added < maxQueuedSessions || added > maxQueuedSessions+large.size() {
		t.Errorf("%d sessions wait", added)
	}
	for stored := 0; stored < added; {
		for _, r := range b.next() {
			stored += r.size()
		}
	}
	if len(b.next()) != 0 || b.sessions != 0 {
		t.Errorf("%d sessions are left", b.sessions)
	}
}

func newIDs(n int) []uuid.UUID {
	list := make([]uuid.UUID, n)
	for i := range list {
		list[i] = uuid.New()
	}
	return list
}

// TestEndedSeldom queries the ended sessions once a second, however many reports come.
func TestEndedSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		queries := 0
		ended := endedSessions{query: func(context.Context) ([]uuid.UUID, error) { queries++; return newIDs(queries), nil }}
		for range 30 {
			ids, err := ended.list(t.Context())
			if err != nil || len(ids) != queries {
				t.Errorf("%d sessions, %v", len(ids), err)
			}
			time.Sleep(endedInterval / 10)
		}
		if queries != 3 {
			t.Errorf("%d queries in three seconds", queries)
		}
	})
}
