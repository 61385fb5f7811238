package console

import (
	"context"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/web/console/people"
	"github.com/proofline/proofline/web/console/sites"
)

// connectorTokens returns a function that lists the expiring tokens that an organization's connectors
// may use. Without accounts there are no tokens.
func connectorTokens(a *account.Accounts) func(context.Context, account.Actor) ([]sites.ExpiringToken, error) {
	return func(ctx context.Context, by account.Actor) (list []sites.ExpiringToken, err error) {
		if a == nil {
			return nil, nil
		}
		expiring, err := a.Tokens.Expiring(ctx, by)
		for _, t := range expiring {
			if !t.Scopes.Has(account.Connect) {
				continue
			}
			one := sites.ExpiringToken{Name: t.Name, Expires: t.Expires, Next: people.NextToken(t.TokenInfo)}
			if t.Left > 0 {
				one.When = account.InDays(t.Left)
			}
			list = append(list, one)
		}
		return list, err
	}
}
