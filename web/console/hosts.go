package console

import (
	"context"

	"github.com/proofline/proofline/console/account"
)

// VerifiedHosts returns what lists the custom hosts that an actor's organization
// has shown to be its own.
func VerifiedHosts(accounts *account.Accounts) func(context.Context, account.Actor) ([]string, error) {
	return func(ctx context.Context, actor account.Actor) ([]string, error) {
		claimed, err := accounts.Hosts.List(ctx, actor)
		if err != nil {
			return nil, err
		}
		var list []string
		for _, h := range claimed {
			if h.Verified != nil {
				list = append(list, h.Host)
			}
		}
		return list, nil
	}
}
