package account

import (
	"context"
	"fmt"

	"github.com/proofline/proofline/console/account/pgaccount"
)

// ActivityLog writes the activity log of operators. Details must not contain secrets.
type ActivityLog interface {
	Record(ctx context.Context, by Actor, verb, object string, detail map[string]any) error
}

// recorder writes entries to the activity log.
type recorder struct {
	log     ActivityLog // nil: no activity log
	members *pgaccount.Members
}

// record writes an entry to the activity log.
func (r *recorder) record(ctx context.Context, by Actor, verb, object string, detail map[string]any) error {
	if r.log == nil {
		return nil
	}
	if err := r.log.Record(ctx, by, verb, object, detail); err != nil {
		return fmt.Errorf("record %s: %w", verb, err)
	}
	return nil
}

// recordEverywhere writes an activity log entry about a person to all of the person's
// organizations.
func (r *recorder) recordEverywhere(ctx context.Context, p pgaccount.Person, verb string, detail map[string]any) error {
	orgs, err := r.members.Of(ctx, p.ID)
	if err != nil {
		return err
	}
	for _, o := range orgs {
		by := Actor{Kind: Person, ID: p.ID, Name: p.Email, Org: o.ID}
		if err := r.record(ctx, by, verb, p.Email, detail); err != nil {
			return err
		}
	}
	return nil
}
