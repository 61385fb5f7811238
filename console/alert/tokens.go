package alert

import (
	"context"
	"fmt"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/webhook"
)

// checksPerTokenCheck is the number of checks of rooms per check of tokens, which so runs every ten
// minutes.
const checksPerTokenCheck = 60

// checkTokens sends one alert for each notice of a token.
func (w *Watcher) checkTokens(ctx context.Context) {
	tokens, err := w.ExpiringTokens(ctx)
	if err != nil {
		if ctx.Err() == nil {
			w.Log.Warn("cannot list expiring tokens", "err", err)
		}
		return
	}
	for _, e := range tokens {
		if !w.Sender.Wants(e.Org, webhook.AlertTokenEnds) {
			continue
		}
		about := fmt.Sprintf("token %s %s", e.ID, e.Notice)
		if err := w.Sender.SendOnce(ctx, e.Org, webhook.AlertTokenEnds, about, w.tokenText(&e)); err != nil &&
			ctx.Err() == nil {
			w.Log.Error("cannot send alert", "kind", webhook.AlertTokenEnds, "err", err)
		}
	}
}

// tokenText describes when a token expires, what stops working then, and what to do.
func (w *Watcher) tokenText(e *account.ExpiringToken) string {
	verb, then := "expires", "After that,"
	if e.Left <= 0 {
		verb, then = "expired", "Since then,"
	}
	text := fmt.Sprintf("The token %q (%s) %s on %s", e.Name, e.Scopes, verb,
		webhook.Moment(e.Expires.Truncate(time.Minute)))
	if e.Left > 0 {
		text += ", " + account.InDays(e.Left)
	}
	text += fmt.Sprintf(". It was last used on %s. ", webhook.Moment(e.Used.Truncate(time.Minute)))
	switch {
	case e.Scopes&^account.Connect == 0 && e.Left > 0:
		text += then + " connectors will keep their current rules, without updates, " +
			"and open and shut gates by their own counts."
	case e.Scopes&^account.Connect == 0:
		text += then + " connectors have kept their current rules, without updates, " +
			"and opened and shut gates by their own counts."
	case e.Left > 0:
		text += then + " requests with it will be refused."
	default:
		text += then + " requests with it have been refused."
	}
	return text + fmt.Sprintf(" Create a new token at %s/console/tokens, use it instead, and revoke this one.",
		w.Rooms.PublicURL)
}
