package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/activity/pgactivity"
	"github.com/proofline/proofline/console/alert"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/control/pgcontrol"
	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/console/live/pglive"
	"github.com/proofline/proofline/console/outsider"
	"github.com/proofline/proofline/console/rehearse"
	"github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/console/site/pgsite"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/console/webhook/pgwebhook"
	"github.com/proofline/proofline/room/pgroom"
)

// cleanupInterval is the time between two deletions of expired rows and files.
const cleanupInterval = 10 * time.Minute

// organizers holds the services behind the console and the management API.
type organizers struct {
	control  *control.Rooms
	keys     *pgcontrol.Keys
	activity *activity.Log
	accounts *account.Accounts
	live     *live.Live
	webhooks *webhook.Service
	sites    *site.Sites
}

// openOrganizers starts the services for organizers, and creates the setup link for
// the first owner.
func (s *Server) openOrganizers(ctx context.Context) error {
	public, err := url.Parse(s.cfg.PublicURL)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPublicURL, err)
	}
	o := &s.organizers
	rehearsals := rehearse.New(s.rooms, s.limits, s.cfg.Log)
	s.atStop(rehearsals.Close)
	o.activity = activity.New(activity.Options{
		Store: pgactivity.NewStore(s.pool), Kept: time.Duration(s.cfg.KeepPersonal), IsRefusal: control.IsRefusal,
		Log: s.cfg.Log,
	})
	records := pgroom.NewStore(s.pool)
	stored := pgcontrol.NewStore(s.pool)
	o.keys = stored.Keys
	options := control.Options{
		Rooms: s.rooms, Store: stored, Records: records, Activity: o.activity, OwnsHost: s.ownsHost,
		OrganizerName: s.organizerName, Rehearsals: rehearsals, Log: s.cfg.Log,
	}
	if s.issuer != nil {
		options.Issuer = s.issuer
	}
	options.Ready = s.newReady()
	o.control = control.New(options)
	o.accounts = account.New(account.Options{
		Store: pgaccount.NewStore(s.pool), Sealer: s.masterKey, Activity: o.activity, URL: s.cfg.PublicURL,
		Host:   public.Host,
		Mailer: s.mailer(), OIDC: s.cfg.OIDC, Log: s.cfg.Log, OnSetup: s.removeSetupLink,
	})
	s.atStop(func(context.Context) error {
		o.accounts.Close()
		return nil
	})
	watch := s.newWatch()
	name, _ := os.Hostname() // may be empty
	o.live = live.New(live.Options{
		Rooms: s.rooms, Store: pglive.NewStore(s.pool), Records: records, Name: name, Version: s.cfg.Version,
		Log:     s.cfg.Log,
		Refused: s.limits.Refused, Seen: watch.Alarm,
	})
	if err := s.keepSetupLink(ctx); err != nil {
		return fmt.Errorf("link for the first owner: %w", err)
	}
	o.webhooks = webhook.New(webhook.Options{
		Store: pgwebhook.NewStore(s.pool), Rooms: s.rooms, Sealer: s.masterKey, Activity: o.activity, Log: s.cfg.Log,
		Mail: s.cfg.Mail, Tracer: s.cfg.Tracer, Allowed: s.cfg.WebhookNetworks,
	})
	o.sites = site.New(site.Options{
		Store: pgsite.NewStore(s.pool), Records: records, Rooms: s.rooms, Sealer: s.masterKey, Activity: o.activity,
		HostOwner: o.accounts.Hosts.Owner, Slug: s.slugOf,
	})
	alerts := alert.New(alert.Options{
		Rooms: s.rooms, Figures: o.live.Figures, ExpiringTokens: o.accounts.Tokens.AllExpiring,
		Sender: o.webhooks.Alerts, Issuers: s.issuers.Of,
		Log: s.cfg.Log,
	})
	s.inBackground(o.live.Run, o.webhooks.Run, alerts.Run, s.cleanUp, s.newRetention(s.issuer.files()...).Run,
		func(ctx context.Context) { watch.Run(ctx, o.webhooks.Alerts) })
	return nil
}

// newWatch returns the watch of the own rooms; nil: it is turned off.
func (s *Server) newWatch() *outsider.Watch {
	if s.cfg.Watch == 0 {
		return nil
	}
	watch := outsider.New(outsider.Options{Rooms: s.rooms, Late: s.cfg.Watch, Log: s.cfg.Log,
		Dir: filepath.Join(s.cfg.Data, EvidenceDir), Open: outsider.HTTP()})
	s.watch.Store(watch)
	return watch
}

// keepSetupLink creates the link for the first owner and writes it to a file, because the system's
// journal would keep it long after its use. Once there is an owner, it removes the file.
func (s *Server) keepSetupLink(ctx context.Context) (err error) {
	if s.SetupLink, err = s.organizers.accounts.Invitations.SetupLink(ctx); err != nil {
		return err
	}
	if s.SetupLink == "" {
		s.removeSetupLink()
		return nil
	}
	s.SetupFile = filepath.Join(s.cfg.Data, SetupFile)
	if err := os.MkdirAll(s.cfg.Data, 0o700); err != nil {
		return err
	}
	return secret.Replace(s.SetupFile, s.SetupLink)
}

func (s *Server) removeSetupLink() {
	if err := os.Remove(filepath.Join(s.cfg.Data, SetupFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.cfg.Log.Warn("cannot remove the file of the used setup link: delete it by hand", "err", err)
	}
}

func (s *Server) organizerName(ctx context.Context, org uuid.UUID) string {
	return s.organizers.accounts.Organizations.PublicName(ctx, org)
}

// mailer returns the sender of invitations; nil when the server has no mail.
func (s *Server) mailer() account.Mailer {
	if s.cfg.Mail == nil {
		return nil
	}
	return s.cfg.Mail
}

// inBackground runs functions until the server stops.
func (s *Server) inBackground(parts ...func(context.Context)) {
	running, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, part := range parts {
		all.Go(func() { part(running) })
	}
	s.atStop(func(ctx context.Context) error {
		stop()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			all.Wait()
		}()
		select {
		case <-ended:
		case <-s.databaseDown():
		case <-ctx.Done():
		}
		return nil
	})
}

// cleanUp regularly deletes connectors that stopped reporting, and the file of a setup link that was used.
func (s *Server) cleanUp(ctx context.Context) {
	ticker := time.NewTicker(cleanupInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if owned, err := s.organizers.accounts.Invitations.HasOwner(ctx); err == nil &&
				owned { // perhaps through another node's link
				s.removeSetupLink()
			}
			if err := s.organizers.sites.Tidy(ctx); err != nil && ctx.Err() == nil {
				s.cfg.Log.Warn("cannot delete connectors that stopped reporting", "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// ownsHost reports whether an organization has proven that it owns a host.
func (s *Server) ownsHost(ctx context.Context, org uuid.UUID, host string) (bool, error) {
	owner, ok, err := s.organizers.accounts.Hosts.Owner(ctx, host)
	return ok && owner == org, err
}

// slugOf returns an organization's slug.
func (s *Server) slugOf(ctx context.Context, org uuid.UUID) (string, error) {
	o, err := s.organizers.accounts.Organizations.Get(ctx, account.ServerActor(org))
	return o.Slug, err
}
