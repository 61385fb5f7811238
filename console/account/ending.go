package account

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// When people are told of the end of a token.
const (
	day         = 24 * time.Hour
	endsSoon    = 14 * day
	endsAtLast  = 3 * day
	hasEnded    = 7 * day  // after the end
	inUse       = 30 * day // since its latest use a token counts as used
	isConnected = 7 * day  // likewise, one with the scope connect
)

// Notice is what is to be said of the end of a token.
type Notice string

// The notices, in the order in which they come.
const (
	NoNotice   Notice = ""
	NoticeSoon Notice = "soon"  // two weeks before
	NoticeLast Notice = "last"  // three days before
	NoticeEnd  Notice = "ended" // in the week after
)

// Notice returns the notice that is due. There is none of a token that is not
// used, and none of one whose life was not longer than the notice is early, or
// than three days: whoever made it knows.
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

// isUsed tells whether somebody shows the token, or did until it ended.
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

// Ending is a token in use that ends soon, or has ended.
type Ending struct {
	TokenInfo
	Org    uuid.UUID
	Notice Notice
	Left   time.Duration // until the end; below 0: since then
}

// EndingTokens returns the tokens of the actor's organization of whose end there
// is something to say, the first to end first. Who may read may know: what
// they let in is not among it.
func (a *Accounts) EndingTokens(ctx context.Context, by Actor) ([]Ending, error) {
	if !by.May(Read) {
		return nil, ErrForbidden
	}
	return a.endings(ctx, &by.Org)
}

// AllEndingTokens returns those of all organizations, for whoever tells them.
func (a *Accounts) AllEndingTokens(ctx context.Context) ([]Ending, error) { return a.endings(ctx, nil) }

func (a *Accounts) endings(ctx context.Context, org *uuid.UUID) ([]Ending, error) {
	now := a.Now()
	stored, err := a.Store.TokensEnding(ctx, org, now.Add(-hasEnded), now.Add(endsSoon))
	if err != nil {
		return nil, err
	}
	var list []Ending
	for _, t := range stored {
		e := Ending{TokenInfo: newTokenInfo(t), Org: t.Org, Left: t.Expires.Sub(now)}
		if e.Notice = e.TokenInfo.Notice(now); e.Notice != NoNotice {
			list = append(list, e)
		}
	}
	return list, nil
}

// InDays says how long it is until something, in days: "in 13 days".
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
