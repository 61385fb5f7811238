package room

import (
	"context"
	"log/slog"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/mark"
	"github.com/proofline/proofline/room/pgroom"
)

// remindTimeout limits how long the database may take to store all redemptions that this node remembers.
const remindTimeout = time.Minute

// remember writes a redemption to the marks before the site gets the answer, because a database that goes
// back loses redemptions even where its transcript is complete.
func (r *Room) remember(st fairness.Standing) {
	err := r.marks.Redeemed(mark.Redemption(r.record(st)))
	if err == nil {
		r.forgetful.Store(false)
	} else if !r.forgetful.Swap(true) {
		r.log.Error("cannot remember a redemption: if the database goes back, the pass can be used again",
			"room", r.Slug, "err", err)
	}
}

// remind stores redemptions in the database again that it lacks, as far as the nodes of this directory
// remember them.
func remind(ctx context.Context, marks *mark.Store, store *pgroom.Store, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, remindTimeout)
	defer cancel()
	var forgotten int64
	err := marks.Redemptions(func(list []mark.Redemption) error {
		known := make([]pgroom.Admission, len(list))
		for i, r := range list {
			known[i] = pgroom.Admission(r)
		}
		n, err := store.RedeemAgain(ctx, known)
		forgotten += n
		return err
	})
	if forgotten > 0 {
		log.Warn("restored redemptions that the database had lost", "passes", forgotten)
	}
	return err
}
