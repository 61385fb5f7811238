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
	"github.com/proofline/proofline/console/alert"
	"github.com/proofline/proofline/console/desk"
	"github.com/proofline/proofline/console/desk/pgdesk"
	"github.com/proofline/proofline/console/hook"
	"github.com/proofline/proofline/console/hook/pghook"
	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/console/live/pglive"
	"github.com/proofline/proofline/console/rehearse"
	"github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/console/site/pgsite"
)

// tidyEvery is how often what nobody needs any more is deleted.
const tidyEvery = 10 * time.Minute

// organizers is what a server has for those who run rooms.
type organizers struct {
	desk     *desk.Desk
	accounts *account.Accounts
	live     *live.Live
	hooks    *hook.Hooks
	sites    *site.Sites
}

// openOrganizers brings up accounts, desk and figures, and makes the link with
// which the first owner is made.
func (s *Server) openOrganizers(ctx context.Context) error {
	public, err := url.Parse(s.cfg.PublicURL)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPublicURL, err)
	}
	o := &s.organizers
	rehearsals := rehearse.New(s.rooms, s.cfg.Log)
	s.atStop(rehearsals.Close)
	o.desk = desk.New(desk.Options{Rooms: s.rooms, Store: pgdesk.NewStore(s.pool), OwnsHost: s.ownsHost,
		OrganizerName: s.organizerName, Rehearsals: rehearsals, Log: s.cfg.Log})
	o.accounts = account.New(account.Options{
		Store: pgaccount.NewStore(s.pool), Sealer: s.masterKey, ActivityLog: o.desk, URL: s.cfg.PublicURL,
		Host:   public.Host,
		Mailer: s.mailer(), OIDC: s.cfg.OIDC, Log: s.cfg.Log, OnSetup: s.removeSetupLink,
	})
	s.atStop(func(context.Context) error {
		o.accounts.Close()
		return nil
	})
	name, _ := os.Hostname() // empty where it has none
	o.live = live.New(live.Options{Rooms: s.rooms, Store: pglive.NewStore(s.pool), Name: name, Version: s.cfg.Version,
		Log: s.cfg.Log, Refused: s.limits.Refused})
	if err := s.keepSetupLink(ctx); err != nil {
		return fmt.Errorf("link for the first owner: %w", err)
	}
	o.hooks = hook.New(hook.Options{
		Store: pghook.NewStore(s.pool), Rooms: s.rooms, Sealer: s.masterKey, ActivityLog: o.desk, Log: s.cfg.Log,
		Mail: s.cfg.Mail, Allowed: s.cfg.WebhookNetworks,
	})
	o.sites = site.New(site.Options{
		Store: pgsite.NewStore(s.pool), Rooms: s.rooms, Sealer: s.masterKey, Acts: o.desk,
		HostOwner: o.accounts.HostOwner, Slug: s.slugOf,
	})
	alerts := alert.New(alert.Options{
		Rooms: s.rooms, Figures: o.live.Figures, ExpiringTokens: o.accounts.AllExpiringTokens, Sender: o.hooks,
		Log: s.cfg.Log,
	})
	s.inBackground(o.live.Run, o.hooks.Run, alerts.Run, s.tidy)
	return nil
}

// keepSetupLink makes the link for the first owner, and keeps it in a file: what a
// server prints stays in the journal of the machine for longer than the link is
// meant to be seen. With an owner a file from before is removed.
func (s *Server) keepSetupLink(ctx context.Context) (err error) {
	if s.SetupLink, err = s.organizers.accounts.SetupLink(ctx); err != nil {
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
		s.cfg.Log.Warn("cannot remove the link for the first owner, which is used up", "err", err)
	}
}

func (s *Server) organizerName(ctx context.Context, org uuid.UUID) string {
	return s.organizers.accounts.PublicName(ctx, org)
}

// mailer sends invitations, where the server has mail.
func (s *Server) mailer() account.Mailer {
	if s.cfg.Mail == nil {
		return nil
	}
	return s.cfg.Mail
}

// inBackground runs parts until the server stops.
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
		case <-s.gone():
		case <-ctx.Done():
		}
		return nil
	})
}

// tidy deletes what nobody needs any more, now and then.
func (s *Server) tidy(ctx context.Context) {
	ticker := time.NewTicker(tidyEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := s.organizers.accounts.Tidy(ctx); err != nil && ctx.Err() == nil {
				s.cfg.Log.Warn("old sessions and links are not deleted", "err", err)
			}
			if owned, err := s.organizers.accounts.HasOwner(ctx); err == nil && owned { // another node's link was used
				s.removeSetupLink()
			}
			if err := s.organizers.sites.Tidy(ctx); err != nil && ctx.Err() == nil {
				s.cfg.Log.Warn("old connectors are not forgotten", "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// ownsHost tells whether an organization has shown that a host is its own.
func (s *Server) ownsHost(ctx context.Context, org uuid.UUID, host string) (bool, error) {
	owner, ok, err := s.organizers.accounts.HostOwner(ctx, host)
	return ok && owner == org, err
}

// slugOf returns that of an organization.
func (s *Server) slugOf(ctx context.Context, org uuid.UUID) (string, error) {
	o, err := s.organizers.accounts.Organization(ctx, account.ServerActor(org))
	return o.Slug, err
}
