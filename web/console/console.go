package console

import (
	"context"
	"embed"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/control"
	figures "github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/web/console/live"
	"github.com/proofline/proofline/web/console/people"
	"github.com/proofline/proofline/web/console/rooms"
	"github.com/proofline/proofline/web/console/shell"
	"github.com/proofline/proofline/web/console/sites"
)

// Options configures a [Console]. Control is required. Pages whose service is nil are left out.
type Options struct {
	// Identify returns the owner of a session token, or [shell.ErrSignIn]; nil: the sessions of Accounts.
	Identify func(ctx context.Context, token string) (shell.Identity, error)
	// Describe describes an error to people. It must not reveal internal details.
	Describe func(error) shell.Problem
	// Accounts manages people, organizations and tokens.
	Accounts *account.Accounts
	// Control performs the operations of organizers on their rooms.
	Control *control.Rooms
	// Activity is the activity log.
	Activity *activity.Log
	// Hosts lists the custom hosts under which an organization may publish rooms; nil: those that
	// Accounts has verified.
	Hosts func(ctx context.Context, actor account.Actor) ([]string, error)
	// Live provides the figures of rooms.
	Live *figures.Live
	// Webhooks sends webhooks and alerts.
	Webhooks *webhook.Service
	// Sites manages the sites that rooms protect.
	Sites *site.Sites
	// Closing is closed when the server stops, so that streams end; nil: never.
	Closing <-chan struct{}
	// CrossOrigin refuses requests from other sites.
	CrossOrigin *http.CrossOriginProtection
	// Manifest is the manifest.json of the built assets.
	Manifest []byte
	// Version is the version of the program.
	Version string
	// PublicURL is the public address of the server.
	PublicURL string
	// Foreign reports whether a request was made to the custom host of an organization; such a
	// request is redirected to PublicURL. nil: there are no custom hosts.
	Foreign func(*http.Request) bool
	Now     func() time.Time // nil: time.Now
	Log     *slog.Logger
}

// Console serves the pages. It is safe for concurrent use.
type Console struct{ shell *shell.Shell }

//go:embed templates
var files embed.FS

// New returns the console. An error means that one of the program's templates is invalid.
func New(o Options) (*Console, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Accounts != nil {
		if o.Identify == nil {
			o.Identify = people.IdentifyBy(o.Accounts.Sessions, o.Accounts.Members)
		}
		if o.Hosts == nil {
			o.Hosts = people.VerifiedHosts(o.Accounts.Hosts)
		}
	}
	s, err := shell.New(shell.Options{
		Identify: o.Identify, Describe: o.Describe, Rooms: o.Control, CrossOrigin: o.CrossOrigin,
		Manifest: o.Manifest, Version: o.Version, PublicURL: o.PublicURL, Foreign: o.Foreign, Now: o.Now, Log: o.Log,
	}, parts(o)...)
	return &Console{s}, err
}

// parts returns the groups of pages.
func parts(o Options) []shell.Part {
	inRooms := rooms.Options{
		Control: o.Control, Hosts: o.Hosts, Manifest: o.Manifest, Now: o.Now, Log: o.Log,
	}
	if o.Accounts != nil {
		inRooms.Organizations = o.Accounts.Organizations
	}
	inLive := live.Options{Control: o.Control, Figures: o.Live, Closing: o.Closing}
	if o.Sites != nil {
		inRooms.Sites, inLive.Sites = o.Sites, o.Sites
	}
	inPeople := people.Options{Accounts: o.Accounts, Webhooks: o.Webhooks, PublicURL: o.PublicURL, Log: o.Log}
	if o.Activity != nil {
		inPeople.Activity = o.Activity
	}
	if o.Control != nil {
		inPeople.Quotas = o.Control.Quotas
	}
	list := []shell.Part{homePart(checksOf(o.Control)), rooms.Part(inRooms), live.Part(inLive), people.Part(inPeople)}
	if o.Sites != nil {
		list = append(list, sites.Part(sites.Options{
			Sites: o.Sites, Rooms: o.Control, Tokens: connectorTokens(o.Accounts), PublicURL: o.PublicURL,
		}))
	}
	return list
}

// Routes lists all routes, for tests that walk them.
func (c *Console) Routes() []shell.Listed { return c.shell.Routes() }

// Register adds the routes to a server.
func (c *Console) Register(e *echo.Echo) { c.shell.Register(e) }
