// Package people serves the console's pages about people and organizations: signing in, accounts,
// members, tokens, the activity log, webhooks and alerts.
package people

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/web/console/format"
	"github.com/proofline/proofline/web/console/shell"
)

// ActivityLog lists the operations of people and programs.
type ActivityLog interface {
	Entries(ctx context.Context, by account.Actor, object string, before uuid.UUID, limit int) (activity.Page, error)
}

// Options configures the pages. Pages whose service is nil are left out.
type Options struct {
	Accounts  *account.Accounts
	Activity  ActivityLog
	Webhooks  *webhook.Service
	Quotas    *control.Quotas
	PublicURL string // URL of the server
	Log       *slog.Logger
}

//go:embed templates
var files embed.FS

// Part returns the pages.
func Part(o Options) shell.Part {
	p := shell.Part{Name: "people", Templates: shell.Templates(files), Notices: notices}
	if a := o.Accounts; a != nil {
		s := sessions{a.Sessions}
		me := &profile{a.People, a.Factors, a.Members, s}
		p.Routes = slices.Concat(
			(&signIn{a.SignIns, a.SignInLinks, a.OIDC, a.People, a.Members, s, o.PublicURL, o.Log}).routes(),
			(&invitations{a.Invitations, a.SignInLinks, s}).routes(),
			me.routes(),
			(&organization{a.Organizations, a.Members, a.Invitations, a.Hosts, o.Quotas}).routes(),
			(&tokens{a.Tokens}).routes(),
		)
	}
	if o.Activity != nil {
		p.Routes = append(p.Routes, (&activityLog{o.Activity}).routes()...)
	}
	if w := o.Webhooks; w != nil {
		p.Routes = slices.Concat(p.Routes, (&webhooks{w.Endpoints, w.Deliveries}).routes(),
			(&alerts{w.Alerts, w.Endpoints}).routes())
	}
	return p
}

// confirmed wraps handlers of sensitive actions: people must have confirmed their identity recently.
func confirmed(handle func(*shell.Request) error) func(*shell.Request) error {
	return func(x *shell.Request) error {
		if !isFresh(x) {
			return shell.ErrConfirm
		}
		return handle(x)
	}
}

// isFresh reports whether the person has confirmed their identity recently.
func isFresh(x *shell.Request) bool { return x.Now().Sub(x.Identity.Confirmed) < account.ConfirmedLife }

// refused shows the page of a form again if err is something that people can act on. The page shows the error at
// the field, or at the top for the field "". Other errors are returned.
func refused(x *shell.Request, page, field string, data any, err error) error {
	if wrong := (*invalid.Error)(nil); errors.As(err, &wrong) {
		return x.Invalid(page, data, err)
	}
	if errors.Is(err, account.ErrSignedOut) {
		return shell.ErrSignIn // the session has ended since the request began
	}
	status := 0
	if soon := (*account.RateError)(nil); errors.As(err, &soon) {
		status = http.StatusTooManyRequests
		x.Response().Header().Set("Retry-After", fmt.Sprint(int64((soon.Wait+time.Second-1)/time.Second)))
		err = soon
	}
	for _, known := range refusals {
		if errors.Is(err, known.err) {
			status, err = known.status, known.err
		}
	}
	if limit, ok := errors.AsType[*account.LimitError](err); ok {
		status, err = http.StatusConflict, limit
	}
	if status == 0 {
		return err
	}
	problems := invalid.List{{Field: field, Detail: format.Sentence(err)}}
	return x.Render(status, page, shell.View{Data: data, Problems: problems})
}

// refusals lists the errors that pages show, with their status.
var refusals = []struct {
	err    error
	status int
}{
	{account.ErrCredentials, http.StatusForbidden},
	{account.ErrLastOwner, http.StatusConflict},
	{account.ErrExists, http.StatusConflict},
	{account.ErrInUse, http.StatusConflict},
	{account.ErrUnverified, http.StatusConflict},
	{account.ErrOtherPerson, http.StatusConflict},
	{account.ErrLink, http.StatusGone},
	{account.ErrOIDC, http.StatusForbidden},
	{account.ErrNoAccount, http.StatusForbidden},
}

// notices are shown after an action.
var notices = map[string]string{ //nolint:gosec // words, not secrets
	"alerts-nobody": "Add a recipient before you send a test.",
	"alerts-saved":  "The alerts are saved.",
	"alerts-tested": "A test alert is on its way, unless one was sent in the last minute.",
	"browser-known": "This browser can sign in now, even after failed attempts elsewhere. " +
		"Enter your password as usual.",
	"factor-removed":       "The second factor is removed. Your password alone signs you in now.",
	"host-added":           "The host is added. Set the TXT record, then check it.",
	"host-removed":         "The host is removed.",
	"host-verified":        "The host is verified. You can publish rooms under it.",
	"left":                 "You have left the organization.",
	"link-mailed":          "If this address has an account, a link is on its way to it. It works once, within an hour.",
	"member-removed":       "The member is removed.",
	"name-changed":         "The name is changed.",
	"organization-changed": "The organization is changed.",
	"password-changed":     "The password is changed. All other sessions have ended.",
	"password-removed": "Your password is removed: from now on you sign in with your identity provider. " +
		"You can set a new one here.",
	"redelivered":         "It is being sent again.",
	"role-changed":        "The role is changed.",
	"session-ended":       "The session has ended.",
	"sessions-ended":      "All other sessions have ended.",
	"sign-in-late":        "The sign-in took too long, or was started in another browser. Please start again.",
	"signed-out":          "You are signed out.",
	"token-revoked":       "The token is revoked. Your other servers refuse it within five seconds.",
	"uninvited":           "The invitation is withdrawn. Its link no longer works.",
	"webhook-deleted":     "The webhook is deleted. Its delivery log stays for 30 days.",
	"webhook-disabled":    "The webhook is disabled. Pending deliveries are dropped.",
	"webhook-enabled":     "The webhook is enabled. It receives events from now on.",
	"webhook-is-disabled": "The webhook is disabled or deleted, so nothing can be sent to it.",
	"webhook-saved":       "The webhook is saved.",
	"webhook-tested":      "A test is on its way.",
}
