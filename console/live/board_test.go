package live

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

// TestBoard has many watchers of a board with one post per second. Each gets each post once, slow
// ones get the latest, and closing the board ends all watches.
func TestBoard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b board
		got := make([][]string, 20)
		ended := make(chan error, len(got))
		for i := range got {
			b.watch(1)
			go func() {
				defer b.watch(-1)
				for {
					document, err := b.next(t.Context())
					if err != nil {
						ended <- err
						return
					}
					got[i] = append(got[i], string(document))
					if i == 0 {
						time.Sleep(3500 * time.Millisecond) // a slow watcher
					}
				}
			}()
		}
		for n := range 10 {
			time.Sleep(time.Second)
			b.post(fmt.Append(nil, n))
		}
		time.Sleep(5 * time.Second)
		b.close()
		for range got {
			if err := <-ended; !errors.Is(err, ErrOver) {
				t.Errorf("ended with %v", err)
			}
		}
		if want := "[0 4 8]"; fmt.Sprint(got[0]) != want {
			t.Errorf("the slow watcher got %v, want %s", got[0], want)
		}
		for i, list := range got[1:] {
			if fmt.Sprint(list) != "[0 1 2 3 4 5 6 7 8 9]" {
				t.Errorf("%d got %v", i+1, list)
			}
		}
		if b.hasWatchers() {
			t.Error("the board reports no watchers")
		}
		if _, err := b.next(t.Context()); !errors.Is(err, ErrOver) {
			t.Errorf("next of a closed board: %v", err)
		}
	})
}

func TestBoardContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := new(board).next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("next: %v", err)
	}
}

func TestSeats(t *testing.T) {
	t.Parallel()
	s := watcherLimit{max: 5, maxOwn: 2}
	one, two, three := uuid.New(), uuid.New(), uuid.New()
	for i, test := range []struct {
		holder uuid.UUID
		want   bool
	}{{one, true}, {one, true}, {one, false}, {two, true}, {two, true}, {three, true}, {three, false}} {
		if got := s.acquire(test.holder); got != test.want {
			t.Errorf("seat %d: %t", i, got)
		}
	}
	s.release(one)
	if s.acquire(two) || !s.acquire(three) {
		t.Error("a released seat cannot be taken")
	}
	s.release(three)
	s.release(three)
	if len(s.byHolder) != 2 {
		t.Errorf("%d persons are still counted", len(s.byHolder))
	}
}
