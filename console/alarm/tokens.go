package alarm

import (
	"context"
	"fmt"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/hook"
)

// tokensEvery is after how many looks at rooms tokens are looked at.
const tokensEvery = 60 // ten minutes

// lookAtTokens tells of the tokens that end soon or have ended, of each once.
func (a *Alarm) lookAtTokens(ctx context.Context) {
	endings, err := a.Endings(ctx)
	if err != nil {
		if ctx.Err() == nil {
			a.Log.Warn("it is not known which tokens end", "err", err)
		}
		return
	}
	for _, e := range endings {
		if !a.Teller.Wants(e.Org, hook.AlertTokenEnds) {
			continue
		}
		about := fmt.Sprintf("token %s %s", e.ID, e.Notice)
		if err := a.Teller.AlertOnce(ctx, e.Org, hook.AlertTokenEnds, about, a.tokenWords(&e)); err != nil && ctx.Err() == nil {
			a.Log.Error("alert is not sent", "kind", hook.AlertTokenEnds, "err", err)
		}
	}
}

// tokenWords say that a token ends, whom that stops, and what to do.
func (a *Alarm) tokenWords(e *account.ExpiringToken) string {
	const minute = "2 January 2006, 15:04 UTC"
	verb, then := "ends", "Then"
	if e.Left <= 0 {
		verb, then = "has ended", "Since then"
	}
	text := fmt.Sprintf("The token %q (%s) %s: %s", e.Name, e.Scopes, verb, e.Expires.UTC().Format(minute))
	if e.Left > 0 {
		text += ", " + account.InDays(e.Left)
	}
	text += fmt.Sprintf(". It was last used %s. ", e.Used.UTC().Format(minute))
	switch {
	case e.Scopes&^account.Connect == 0 && e.Left > 0:
		text += then + " connectors keep the rules that they have, hear of no new ones, and open and shut gates by their own counts."
	case e.Scopes&^account.Connect == 0:
		text += then + " connectors go by the rules that they have, and open and shut gates by their own counts."
	case e.Left > 0:
		text += then + " whoever uses it is refused."
	default:
		text += then + " whoever uses it has been refused."
	}
	return text + fmt.Sprintf(" Make the next one at %s/console/tokens, put it where this one is, and revoke this one.", a.Rooms.PublicURL)
}
