package revocation

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/projection"
)

// atOnce is how many tickets that will be called at once are restored together.
const atOnce = 64

// Restored is the result of giving places back.
type Restored struct {
	Tally      // before it
	Length int // places given back, with those of Called
	Called int // places that the line had passed, whose visitors are called at once
	Later  int // places that the line has passed, and that outflow, seats or a pause keep from being called now
}

// Restore gives the revoked tickets of a selection their places back, once each: those that wait together or not at
// all, and those whose place the line has passed one by one, in the order of their places, for as long as outflow and
// seats allow. Tickets whose revocation is an entry before since stay revoked. Errors: as for [Lists.Revoke].
func (l *Lists) Restore(ctx context.Context, s Selection, since uint64) (done Restored, err error) {
	var passed []place
	err = l.room.Do(ctx, func(p *projection.Projection, now fairness.Time) (entries []fairness.Entry, err error) {
		if p.Ended() {
			return nil, ErrEnded
		}
		list, tally, err := s.places(p, p.Size(), now)
		if err != nil {
			return nil, err
		}
		tally.count(p, list, since)
		isPassed := passedBy(p)
		passed = nil // this may run again
		for _, one := range list {
			switch {
			case !one.isRestorable(since):
			case one.drawing:
				return nil, ErrDrawing
			case isPassed(one):
				passed = append(passed, one)
			default:
				entries = append(entries, &fairness.Restore{Time: now, Ticket: one.Ticket})
			}
		}
		done = Restored{Tally: tally, Length: len(entries)}
		return entries, nil
	})
	if err != nil {
		return done, err
	}
	slices.SortFunc(passed, func(a, b place) int { return int(a.Position) - int(b.Position) })
	for len(passed) > 0 && err == nil && done.Later == 0 {
		next := passed[:min(atOnce, len(passed))]
		passed = passed[len(next):]
		err = l.call(ctx, next, since, &done)
	}
	done.Later += len(passed)
	return done, err
}

func (p place) isRestorable(since uint64) bool {
	return p.Status == fairness.StatusSkipped && p.Reason.IsRevoked() && !p.Restored && uint64(p.SettledIndex) >= since
}

// call restores tickets that are called at once.
func (l *Lists) call(ctx context.Context, list []place, since uint64, done *Restored) error {
	results := make([]error, len(list))
	var all errgroup.Group
	for i, one := range list {
		all.Go(func() error {
			results[i] = l.room.Do(ctx, func(p *projection.Projection, now fairness.Time) ([]fairness.Entry, error) {
				st, _ := p.Standing(one.Ticket, p.Size(), now)
				if !(place{Standing: st}).isRestorable(since) {
					return nil, errMeanwhile
				}
				return []fairness.Entry{&fairness.Restore{Time: now, Ticket: one.Ticket}}, nil
			})
			return nil
		})
	}
	_ = all.Wait() // results has the errors
	for _, err := range results {
		_, isRefused := errors.AsType[*fairness.Violation](err)
		switch {
		case err == nil:
			done.Length++
			done.Called++
		case errors.Is(err, errMeanwhile):
		case isRefused:
			done.Later++
		default:
			return err
		}
	}
	return nil
}

// errMeanwhile means that another request has restored the ticket.
var errMeanwhile = errors.New("the ticket was restored meanwhile")
