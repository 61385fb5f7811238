package people

import (
	"context"

	"github.com/proofline/proofline/console/account"
)

// VerifiedHosts returns a function that lists the verified custom hosts of an actor's organization.
func VerifiedHosts(hosts *account.Hosts) func(context.Context, account.Actor) ([]string, error) {
	return func(ctx context.Context, actor account.Actor) ([]string, error) {
		claimed, err := hosts.List(ctx, actor)
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
