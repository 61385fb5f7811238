package issuer

import (
	"context"
	"errors"
	"time"

	"github.com/proofline/proofline/console/retention"
	"github.com/proofline/proofline/fairness/credential/issuer"
	"github.com/proofline/proofline/internal/personal"
)

const forgetInterval = 10 * time.Minute

// forget regularly deletes what the issuer knows about visitors and keeps no longer, until ctx ends. It leaves a round
// out unless this machine's clock has gone long enough without a jump.
func (f *serveFlags) forget(ctx context.Context, store *issuer.Store) {
	if f.keep == retention.Forever {
		return
	}
	steady := personal.NewSteady()
	ticker := time.NewTicker(forgetInterval)
	defer ticker.Stop()
	for {
		if steady.For() >= f.settled {
			f.forgetAt(time.Now(), store)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// forgetAt deletes what is kept no longer at a time.
func (f *serveFlags) forgetAt(now time.Time, store *issuer.Store) {
	c := f.current.Load()
	isOver := func(offer string) bool { return c.isForgotten(offer, f.keep, now) }
	records, err := store.Forget(isOver, false)
	entries, err2 := f.dir.RemoveLists(func(list string) bool { return c.isUnused(list, isOver) }, false)
	passkeys, err3 := store.ForgetPasskeys(f.keep.Since(now))
	if err := errors.Join(err, err2, err3); err != nil {
		f.base.Log.Error("cannot delete expired personal data: the next attempt is in ten minutes", "err", err)
	}
	if records+entries > 0 || passkeys > 0 {
		f.base.Log.Info("deleted expired personal data", "records", records, "entries_of_lists", entries,
			"passkeys", passkeys)
	}
}

// isForgotten reports whether an offer ended so long ago that nothing is kept of it.
func (o *offerConfig) isForgotten(keep retention.Keep, now time.Time) bool {
	return !o.Until.IsZero() && o.Until.Before(keep.Since(now))
}

// isForgotten reports whether an offer of a name ended that long ago. One that the configuration does not name may
// return.
func (c *config) isForgotten(offer string, keep retention.Keep, now time.Time) bool {
	for _, o := range c.Offers {
		if o.Name == offer {
			return o.isForgotten(keep, now)
		}
	}
	return false
}

// isUnused reports whether all offers of a list are over. One that no offer names may be for a later one.
func (c *config) isUnused(list string, isOver func(offer string) bool) bool {
	isNamed := false
	for _, o := range c.Offers {
		if o.List != list {
			continue
		}
		if isNamed = true; !isOver(o.Name) {
			return false
		}
	}
	return isNamed
}
