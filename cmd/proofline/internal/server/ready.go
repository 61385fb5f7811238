package server

import (
	"context"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/ready"
)

// newReady returns the checks of this server. It reads the accounts and alerts only when it is asked, when they exist.
func (s *Server) newReady() *ready.Ready {
	o := &s.organizers
	return ready.New(ready.Options{
		Rooms: s.rooms, Meter: s.meter, IsPrivate: s.local != nil, Data: s.cfg.Data, PublicURL: s.cfg.PublicURL,
		Issuers:    s.issuers.Of,
		Conditions: func(ctx context.Context) (pglog.Conditions, error) { return pglog.ReadConditions(ctx, s.pool) },
		Role:       func(ctx context.Context) error { return pglog.CheckRole(ctx, s.pool) },
		HasOwner:   func(ctx context.Context) (bool, error) { return o.accounts.Invitations.HasOwner(ctx) },
		Recipients: func(ctx context.Context, actor account.Actor) (int, error) {
			settings, err := o.webhooks.Alerts.Settings(ctx, actor)
			emails := len(settings.Emails)
			if !o.webhooks.Alerts.HasMail() {
				emails = 0
			}
			return emails + len(settings.Endpoints), err
		},
	})
}
