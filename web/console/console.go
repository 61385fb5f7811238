package console

import (
	"context"
	"embed"
	"io/fs"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/live"
	sites "github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/web/console/shell"
)

// Options configures a [Console]. Pages whose service is nil do not exist.
type Options struct {
	// Identify returns the owner of a session token, or [shell.ErrSignIn].
	Identify func(ctx context.Context, token string) (shell.Identity, error)
	// Describe describes an error to people. It must not reveal internal details.
	Describe func(error) shell.Problem
	// Accounts has people, organizations and tokens.
	Accounts *account.Accounts
	// Control performs the operations of organizers on their rooms.
	Control *control.Rooms
	// Activity is the activity log.
	Activity *activity.Log
	// Hosts lists the custom hosts under which an organization may publish rooms; nil: none.
	Hosts func(ctx context.Context, actor account.Actor) ([]string, error)
	// Live has the figures of rooms.
	Live *live.Live
	// Webhooks sends webhooks and alerts.
	Webhooks *webhook.Service
	// Sites has the sites that rooms protect.
	Sites *sites.Sites
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
	// Foreign reports whether a request was made to the custom host of an organization: it is
	// redirected to PublicURL. nil: custom hosts do not exist.
	Foreign func(*http.Request) bool
	Now     func() time.Time // nil: time.Now
	Log     *slog.Logger
}

// Console serves the pages. It is safe for concurrent use.
type Console struct {
	Options
	shell  *shell.Shell
	trials *trials
	gains  gains
}

//go:embed templates
var files embed.FS

// New returns the console. An error means that a template of the program is wrong.
func New(o Options) (*Console, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Console{Options: o, trials: newTrials()}
	templates, err := fs.Sub(files, "templates")
	if err != nil {
		return nil, err
	}
	base := shell.Options{
		Identify: o.Identify, Describe: o.Describe, CrossOrigin: o.CrossOrigin, Manifest: o.Manifest,
		Version: o.Version, PublicURL: o.PublicURL, Foreign: o.Foreign, Now: o.Now, Log: o.Log,
	}
	if o.Control != nil {
		base.Rooms = o.Control
	}
	c.shell, err = shell.New(base, shell.Part{
		Name: "console", Routes: c.shellRoutes(), Templates: templates, Notices: notices,
		Functions: map[string]any{
			"fieldName": fieldName, "turn": turn, "windowState": windowState, "ahead": ahead, "until": until,
			"emptied": emptied, "verdict": rehearsalVerdict,
		},
	})
	return c, err
}

// Routes lists all routes, for tests that walk them.
func (c *Console) Routes() []shell.Listed { return c.shell.Routes() }

// Register adds the routes to a server.
func (c *Console) Register(e *echo.Echo) { c.shell.Register(e) }

// allRoutes are the routes of all files.
func (c *Console) allRoutes() []route {
	var list []route
	for _, some := range [][]route{
		c.homeRoutes(),
		c.roomRoutes(),
		c.editorRoutes(),
		c.settingsRoutes(),
		c.queueItRoutes(),
		c.accountsRoutes(),
		c.brandRoutes(),
		c.liveRoutes(),
		c.controlRoutes(),
		c.reportRoutes(),
		c.activityRoutes(),
		c.webhookRoutes(),
		c.alertRoutes(),
		c.rehearsalRoutes(),
		c.siteRoutes(),
	} {
		list = append(list, some...)
	}
	return list
}
