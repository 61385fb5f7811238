package session

import (
	"context"
	"log/slog"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/mark"
	"github.com/proofline/proofline/room/pgroom"
)

// restoreTimeout limits how long the database may take to store all redemptions that this node remembers.
const restoreTimeout = time.Minute

// remember writes a redemption to the marks before the site gets the answer, because a database that is reset to
// an earlier state may lose redemptions even if its transcripts are complete.
func (s *Sessions) remember(st fairness.Standing) {
	err := s.marks.Redeemed(mark.Redemption(s.record(st)))
	if err == nil {
		s.isUnmarked.Store(false)
	} else if !s.isUnmarked.Swap(true) {
		s.log.Error("cannot store a redemption in the marks: if the database loses it, the pass can be used again",
			"room", s.room.Slug, "err", err)
	}
}

// Restore stores the redemptions that the database lacks, as far as the nodes of this directory remember them.
func Restore(ctx context.Context, marks *mark.Store, store *pgroom.Sessions, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, restoreTimeout)
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
