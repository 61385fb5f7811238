package account

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Times around a token's expiry.
const (
	day         = 24 * time.Hour
	endsSoon    = 14 * day
	endsAtLast  = 3 * day
	hasEnded    = 7 * day  // time after the expiry in which NoticeEnd is due
	inUse       = 30 * day // a token is in use if it was used this recently
	isConnected = 7 * day  // inUse for a token with the scope connect
)

// Notice is a warning about a token's expiry.
type Notice string

// The notices, in order of time.
const (
	NoNotice   Notice = ""
	NoticeSoon Notice = "soon"  // two weeks before the expiry
	NoticeLast Notice = "last"  // three days before the expiry
	NoticeEnd  Notice = "ended" // in the week after the expiry
)

// Notice returns the notice that is due. Tokens not in use get none. A token whose whole life is
// shorter than the lead time of a notice skips that notice, and one that lives for three days or
// less gets none, because its owner expects the expiry.
func (t *TokenInfo) Notice(now time.Time) Notice {
	left, life := t.Expires.Sub(now), t.Expires.Sub(t.Created)
	if !t.isUsed(now) {
		return NoNotice
	}
	switch {
	case life <= endsAtLast, left <= -hasEnded:
		return NoNotice
	case left <= 0:
		return NoticeEnd
	case left <= endsAtLast:
		return NoticeLast
	case left <= endsSoon && life > endsSoon:
		return NoticeSoon
	}
	return NoNotice
}

// Notice returns the notice that is due now for a token.
func (ts *Tokens) Notice(t TokenInfo) Notice { return t.Notice(ts.now()) }

// isUsed reports whether the token is in use, or was until it expired.
func (t *TokenInfo) isUsed(now time.Time) bool {
	if t.Used == nil {
		return false
	}
	if now.After(t.Expires) {
		now = t.Expires
	}
	if t.Scopes&Connect != 0 {
		return now.Sub(*t.Used) <= isConnected
	}
	return now.Sub(*t.Used) <= inUse
}

// ExpiringToken is a token in use that is about to expire or has expired.
type ExpiringToken struct {
	TokenInfo
	Org    uuid.UUID
	Notice Notice
	Left   time.Duration // time until the expiry; negative afterwards
}

// Expiring returns the tokens of the actor's organization with a notice due, earliest expiry
// first. The scope read is enough, because the result contains no secret.
func (ts *Tokens) Expiring(ctx context.Context, by Actor) ([]ExpiringToken, error) {
	if !by.May(Read) {
		return nil, ErrForbidden
	}
	return ts.expiring(ctx, &by.Org)
}

// AllExpiring returns the tokens of all organizations with a notice due, for the alert.
func (ts *Tokens) AllExpiring(ctx context.Context) ([]ExpiringToken, error) {
	return ts.expiring(ctx, nil)
}

func (ts *Tokens) expiring(ctx context.Context, org *uuid.UUID) ([]ExpiringToken, error) {
	now := ts.now()
	stored, err := ts.store.Ending(ctx, org, now.Add(-hasEnded), now.Add(endsSoon))
	if err != nil {
		return nil, err
	}
	var list []ExpiringToken
	for _, t := range stored {
		e := ExpiringToken{TokenInfo: newTokenInfo(t), Org: t.Org, Left: t.Expires.Sub(now)}
		if e.Notice = e.TokenInfo.Notice(now); e.Notice != NoNotice {
			list = append(list, e)
		}
	}
	return list, nil
}

// InDays formats a duration in days, such as "in 13 days".
func InDays(left time.Duration) string {
	switch n := int(left / day); n {
	case 0:
		return "in less than a day"
	case 1:
		return "in a day"
	default:
		return fmt.Sprintf("in %d days", n)
	}
}
