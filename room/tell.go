package room

import (
	"context"
	"strings"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room/projection"
)

// MaxTold is the largest number in a statement: one that every JSON reader holds exactly.
const MaxTold = 1<<53 - 1

// Tell writes a statement of the operator about the stock or the price of a category into the transcript. It
// changes nothing. Errors: [*invalid.Error], [ErrBusy], [ErrStopping], [*StaleError], a [*fairness.Violation] after the
// end of the room, and that of ctx.
func (r *Room) Tell(ctx context.Context, e fairness.Tell) error {
	r.touch()
	if err := checkTell(e); err != nil {
		return err
	}
	return r.sequencer.Do(ctx, func(_ *projection.Projection, now fairness.Time) ([]fairness.Entry, error) {
		e.Time = now
		return []fairness.Entry{&e}, nil
	})
}

func checkTell(e fairness.Tell) error {
	var list invalid.List
	list.Check(fairness.IsLane(string(e.Name)), "category", "must be 1 to 32 of a-z, 0-9 and '-'")
	switch e.Subject {
	case fairness.TellStock:
		list.Check(e.Count <= MaxTold, "left", "must be below 2^53")
	case fairness.TellPrice:
		list.Check(e.Min <= e.Max && e.Max <= MaxTold, "max", "must be at least min, and below 2^53")
		list.Check(len(e.Currency) == 3 && strings.Trim(e.Currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "", "currency",
			"must be the three capital letters of a currency in ISO 4217")
	default:
		list.Add("subject", "must be stock or price")
	}
	return list.Err()
}
