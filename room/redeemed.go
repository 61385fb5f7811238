package room

import (
	"context"
	"log/slog"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/mark"
	"github.com/proofline/proofline/room/pgroom"
)

// remindTimeout bounds how long the database may take for all redemptions that
// this node remembers.
const remindTimeout = time.Minute

// remember notes outside of the database that a pass was redeemed, before the
// site hears it. A database that goes back forgets redemptions even where its
// transcript is complete.
func (r *Room) remember(st fairness.Standing) {
	err := r.marks.Redeemed(mark.Redemption(r.record(st)))
	if err == nil {
		r.forgetful.Store(false)
	} else if !r.forgetful.Swap(true) {
		r.log.Error("redemption is not remembered: should the database go back, the pass can be used once more", "room", r.Slug, "err", err)
	}
}

// remind tells the database which passes were redeemed, as far as the nodes of
// this directory remember, and it does not.
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
		log.Warn("database forgot that passes were redeemed, and knows it again", "passes", forgotten)
	}
	return err
}
