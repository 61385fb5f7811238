package people

import (
	"context"
	"errors"
	"html/template"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/web/console/shell"
)

// profile serves the pages of a person's own account.
type profile struct {
	people   *account.People
	factors  *account.Factors
	members  *account.Members
	sessions sessions
}

func (h *profile) routes() []shell.Route {
	return []shell.Route{
		shell.Get("/account", shell.SignedIn, h.showAccount),
		shell.Post("/account/name", shell.SignedIn, h.changeName),
		shell.Post("/account/password", shell.SignedIn, h.changePassword),
		shell.Post("/account/sessions/end-others", shell.SignedIn, h.endOtherSessions),
		shell.Post("/account/sessions/:id/end", shell.SignedIn, h.endSession),
		shell.Get("/account/second-factor", shell.SignedIn, h.showFactor),
		shell.Post("/account/second-factor", shell.SignedIn, confirmed(h.beginFactor)),
		shell.Post("/account/second-factor/confirm", shell.SignedIn, h.confirmFactor),
		shell.Post("/account/second-factor/remove", shell.SignedIn, confirmed(h.removeFactor)),
		shell.Post("/account/recovery-codes", shell.SignedIn, confirmed(h.newRecoveryCodes)),
		shell.Post("/organization/leave", shell.SignedIn, h.leaveOrganization),
	}
}

// accountPage is the data of the account page.
type accountPage struct {
	account.Session
	Sessions []account.SessionInfo
	Fresh    bool
}

func (h *profile) accountPage(ctx context.Context, x *shell.Request) (accountPage, error) {
	s, err := h.sessions.of(ctx, x)
	if err != nil {
		return accountPage{}, err
	}
	list, err := h.sessions.List(ctx, s)
	return accountPage{s, list, isFresh(x)}, err
}

func (h *profile) showAccount(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	page, err := h.accountPage(ctx, x)
	if err != nil {
		return err
	}
	return x.Page("account", page)
}

// onAccount changes the account, and shows its page with the problems or with a notice.
func (h *profile) onAccount(x *shell.Request, field, notice string,
	do func(context.Context, account.Session) error) error {
	ctx, stop := x.Wait()
	defer stop()
	page, err := h.accountPage(ctx, x)
	if err != nil {
		return err
	}
	if err := do(ctx, page.Session); err != nil {
		return refused(x, "account", field, page, err)
	}
	return x.Done("/account", notice)
}

func (h *profile) changeName(x *shell.Request) error {
	return h.onAccount(x, "name", "name-changed", func(ctx context.Context, s account.Session) error {
		return h.people.Rename(ctx, s, x.Form("name"))
	})
}

func (h *profile) changePassword(x *shell.Request) error {
	return h.onAccount(x, "current", "password-changed", func(ctx context.Context, s account.Session) error {
		if !s.HasPassword && !isFresh(x) {
			return shell.ErrConfirm
		}
		token, err := h.people.ChangePassword(ctx, s, x.Form("current"), x.Form("password"))
		if err == nil {
			x.SetSession(token)
		}
		return err
	})
}

func (h *profile) endSession(x *shell.Request) error {
	return h.onAccount(x, "", "session-ended", func(ctx context.Context, s account.Session) error {
		id, err := uuid.Parse(x.Param("id"))
		if err != nil {
			return account.ErrNotFound
		}
		if err := h.sessions.End(ctx, s, id); !errors.Is(err, account.ErrNotFound) {
			return err
		}
		return nil // the session has already ended
	})
}

func (h *profile) endOtherSessions(x *shell.Request) error {
	return h.onAccount(x, "", "sessions-ended", h.sessions.EndOthers)
}

// factorPage is the data of the second-factor page.
type factorPage struct {
	account.Session
	Pending   *account.Enrolment // enrolment that needs a code to complete; nil: none
	App       template.URL       // link that opens an authenticator app
	CodesLeft int
	Fresh     bool
}

func (h *profile) factorPage(ctx context.Context, x *shell.Request) (factorPage, error) {
	s, err := h.sessions.of(ctx, x)
	if err != nil {
		return factorPage{}, err
	}
	page := factorPage{Session: s, Fresh: isFresh(x)}
	if s.HasFactor {
		page.CodesLeft, err = h.factors.RecoveryCodesLeft(ctx, s)
		return page, err
	}
	if !page.Fresh {
		return page, nil
	}
	e, err := h.factors.Pending(ctx, s)
	if errors.Is(err, account.ErrNotFound) {
		return page, nil
	}
	page.Pending, page.App = &e, template.URL(e.URL) //nolint:gosec // built and escaped by package account
	return page, err
}

func (h *profile) showFactor(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	page, err := h.factorPage(ctx, x)
	if err != nil {
		return err
	}
	return x.Page("second-factor", page)
}

func (h *profile) beginFactor(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	s, err := h.sessions.of(ctx, x)
	if err != nil {
		return err
	}
	if _, err := h.factors.Begin(ctx, s); err != nil {
		return err
	}
	return x.Done("/account/second-factor", "")
}

// confirmFactor completes the enrolment and shows the recovery codes once.
func (h *profile) confirmFactor(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	page, err := h.factorPage(ctx, x)
	if err != nil {
		return err
	}
	codes, token, err := h.factors.Confirm(ctx, page.Session, x.Form("code"))
	if err != nil {
		return refused(x, "second-factor", "code", page, wrongNewCode(err))
	}
	x.SetSession(token)
	return x.Page("recovery-codes", codes)
}

// wrongNewCode explains what to do about a wrong code during enrolment.
func wrongNewCode(err error) error {
	if errors.Is(err, account.ErrCredentials) {
		return invalid.Field("code",
			"is not the code that the app shows now: enter the next one, and if that is wrong as well, check the phone's clock")
	}
	return err
}

func (h *profile) removeFactor(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	page, err := h.factorPage(ctx, x)
	if err != nil {
		return err
	}
	if err := h.factors.Remove(ctx, page.Session, x.Form("password"), x.Form("code")); err != nil {
		return refused(x, "second-factor", "password", page, err)
	}
	return x.Done("/account/second-factor", "factor-removed")
}

func (h *profile) newRecoveryCodes(x *shell.Request) error {
	if !x.IsConfirmed() {
		return x.Confirm(shell.Ask("Create new recovery codes?", "Create new codes",
			"Your current codes stop working."),
			"/account/second-factor")
	}
	ctx, stop := x.Wait()
	defer stop()
	s, err := h.sessions.of(ctx, x)
	if err != nil {
		return err
	}
	codes, err := h.factors.NewRecoveryCodes(ctx, s)
	if err != nil {
		return err
	}
	return x.Page("recovery-codes", codes)
}

func (h *profile) leaveOrganization(x *shell.Request) error {
	if !x.IsConfirmed() {
		return x.Confirm(shell.Ask("Leave "+x.Organization.Name+"?", "Leave",
			"Only an owner can invite you again.",
			"If you belong to no other organization, your account is deleted.").Dangerous(), "/account")
	}
	ctx, stop := x.Wait()
	defer stop()
	if err := h.members.Remove(ctx, x.Actor, x.Actor.ID); err != nil {
		page, pageErr := h.accountPage(ctx, x)
		if pageErr != nil {
			return pageErr
		}
		return refused(x, "account", "", page, err)
	}
	return x.Done("/account", "left")
}
