package account

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/proofline/proofline/console/account/pgaccount"
)

// Mailer sends plain-text mail.
type Mailer interface {
	Send(ctx context.Context, to, subject, text string) error
}

// Options configures [New]. Store, Sealer and URL are required.
type Options struct {
	Store    *pgaccount.Store
	Sealer   Sealer
	Activity ActivityLog // nil: no activity log
	// URL is the base URL of the server without a trailing slash, such as
	// "https://queue.example.com".
	URL string
	// OnSetup is called when the first owner has been created on this node; may be nil.
	OnSetup  func()
	Host     string      // the server's own host, with or without port; organizations cannot claim it
	Mailer   Mailer      // nil: invitations are not mailed, and owners copy the link
	OIDC     *OIDCConfig // nil: no sign-in by OpenID Connect
	Resolver Resolver    // nil: the system resolver
	Now      func() time.Time
	Rand     io.Reader
	Log      *slog.Logger
	Cost     Cost // cost of hashing passwords; zero value: [DefaultCost]
}

// Accounts manages the accounts of a server. Each field manages one kind of object; callers take
// those that they need. All parts are safe for concurrent use, and any number of nodes may share a
// database.
type Accounts struct {
	People        *People
	Factors       *Factors
	SignIns       *SignIns
	SignInLinks   *SignInLinks
	OIDC          *OIDC
	Sessions      *Sessions
	Organizations *Organizations
	Members       *Members
	Invitations   *Invitations
	Tokens        *Tokens
	Hosts         *Hosts

	limits *limiter
}

// New returns the accounts of a server.
func New(o Options) *Accounts {
	o = o.withDefaults()
	db, now, random := o.Store, o.Now, random{o.Rand}
	activity := &recorder{o.Activity, db.Members}
	limits := &limiter{db.Attempts, now}
	sealer := &sealer{o.Sealer}
	passwords := newHasher(o.Cost, random)
	browsers := &browsers{sealer, random, now}
	sessions := &Sessions{db.Sessions, random, now}
	starter := &starter{db.Members, sessions, browsers, sealer, activity, now}
	people := &People{db.People, sessions, passwords, limits, activity, now}
	factors := &Factors{
		store: db.Factors, people: db.People, sessions: sessions, checkPassword: people.checkOwnPassword,
		limits: limits, sealer: sealer, activity: activity, random: random, url: o.URL, now: now,
	}
	return &Accounts{
		People: people, Factors: factors, Sessions: sessions, limits: limits,
		SignIns: &SignIns{
			people: db.People, passwords: passwords, factors: factors, starter: starter, browsers: browsers,
			limits: limits, sealer: sealer, activity: activity, now: now, log: o.Log,
		},
		SignInLinks: &SignInLinks{
			people: db.People, browsers: browsers, mailer: o.Mailer, limits: limits, sealer: sealer,
			activity: activity, random: random, url: o.URL, now: now, log: o.Log,
		},
		OIDC: &OIDC{
			config: o.OIDC, people: db.People, sessions: sessions, starter: starter, sealer: sealer,
			activity: activity, random: random, url: o.URL, now: now, log: o.Log,
		},
		Organizations: &Organizations{
			store: db.Organizations, people: db.People, activity: activity, random: random, now: now, log: o.Log,
		},
		Members: &Members{db.Members, activity, now},
		Invitations: &Invitations{
			store: db.Invitations, organizations: db.Organizations, members: db.Members, people: db.People,
			passwords: passwords, sessions: sessions, starter: starter, mailer: o.Mailer, limits: limits,
			activity: activity, random: random, onSetup: o.OnSetup, url: o.URL, now: now, log: o.Log,
		},
		Tokens: &Tokens{store: db.Tokens, activity: activity, random: random, now: now},
		Hosts: &Hosts{
			store: db.Hosts, resolver: o.Resolver, activity: activity, random: random, own: o.Host, now: now,
		},
	}
}

// withDefaults fills in the defaults.
func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Cost == (Cost{}) {
		o.Cost = DefaultCost
	}
	return o
}

// Close waits for background work, such as logging refused sign-ins.
func (a *Accounts) Close() {
	a.SignIns.background.Wait()
	a.SignInLinks.background.Wait()
}
