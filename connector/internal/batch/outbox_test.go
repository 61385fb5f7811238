package batch

import (
	"context"
	"testing"

	"github.com/proofline/proofline/connector/internal/roomapi"
)

// fakeRoom is a room that gets no updates.
type fakeRoom struct{}

func (*fakeRoom) URL() string { return "https://queue.example.com/r/sale" }

func (*fakeRoom) Update(context.Context, roomapi.Batch) (roomapi.Batch, error) {
	return roomapi.Batch{}, roomapi.ErrUnreachable
}

// TestOutbox tests that the outbox is bounded, and that a pass is in it once.
func TestOutbox(t *testing.T) {
	t.Parallel()
	o, room := New(Options{}), new(fakeRoom)
	for i := range maxQueued + 10 {
		j := update{room: room, pass: [16]byte{byte(i), byte(i >> 8), byte(i >> 16)}, isRelease: i%2 == 0}
		if taken := o.add(j); taken != (i < maxQueued) {
			t.Fatalf("job %d: %t", i, taken)
		}
	}
	o.clear()
	j := update{room: room, pass: [16]byte{1}}
	for _, isRelease := range []bool{false, false, true, false, true} {
		j.isRelease = isRelease
		o.add(j)
	}
	b := o.take()[room]
	if len(b.touch) != 0 || len(b.release) != 1 || o.n != 0 {
		t.Errorf("batch %+v, %d left", b, o.n)
	}
	j.isRelease = false
	o.add(j)
	if again := o.take(); len(again) != 0 {
		t.Errorf("two batches are under way: %v", again)
	}
	o.done(room, b)
	if b = o.take()[room]; len(b.touch) != 0 || len(b.release) != 1 {
		t.Errorf("batch %+v", b)
	}
	o.done(room, batch{})
	if len(o.rooms) != 0 || o.n != 0 {
		t.Errorf("%d rooms, %d jobs are left", len(o.rooms), o.n)
	}
}
