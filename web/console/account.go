package console

import (
	"context"
	"errors"
	"html/template"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/invalid"
)

// accountRoutes are those of a person's own account.
func (c *Console) accountRoutes() []route {
	return []route{
		{GET, "/account", SignedIn, c.showAccount},
		{POST, "/account/name", SignedIn, c.changeName},
		{POST, "/account/password", SignedIn, c.changePassword},
		{POST, "/account/sessions/end-others", SignedIn, c.endOtherSessions},
		{POST, "/account/sessions/:id/end", SignedIn, c.endSession},
		{GET, "/account/second-factor", SignedIn, c.showFactor},
		{POST, "/account/second-factor", SignedIn, c.sudo(c.beginFactor)},
		{POST, "/account/second-factor/confirm", SignedIn, c.confirmFactor},
		{POST, "/account/second-factor/remove", SignedIn, c.sudo(c.removeFactor)},
		{POST, "/account/recovery-codes", SignedIn, c.sudo(c.newRecoveryCodes)},
	}
}

// accountPage is what the page of an account shows.
type accountPage struct {
	account.Session
	Sessions []account.SessionInfo
	Fresh    bool
}

func (x *request) accountPage(ctx context.Context) (accountPage, error) {
	s, err := x.session(ctx)
	if err != nil {
		return accountPage{}, err
	}
	list, err := x.console.Accounts.Sessions.List(ctx, s)
	return accountPage{s, list, x.isFresh()}, err
}

func (c *Console) showAccount(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	page, err := x.accountPage(ctx)
	if err != nil {
		return err
	}
	return x.page("account", page)
}

// onAccount does something with the account, and shows its page again with
// what is wrong, or with a notice.
func (x *request) onAccount(field, notice string, do func(context.Context, account.Session) error) error {
	ctx, stop := x.wait()
	defer stop()
	page, err := x.accountPage(ctx)
	if err != nil {
		return err
	}
	if err := do(ctx, page.Session); err != nil {
		return x.refused("account", field, page, err)
	}
	return x.done("/account", notice)
}

func (c *Console) changeName(x *request) error {
	return x.onAccount("name", "name-changed", func(ctx context.Context, s account.Session) error {
		return c.Accounts.People.Rename(ctx, s, x.form("name"))
	})
}

func (c *Console) changePassword(x *request) error {
	return x.onAccount("current", "password-changed", func(ctx context.Context, s account.Session) error {
		if !s.HasPassword && !x.isFresh() {
			return ErrConfirm
		}
		token, err := c.Accounts.People.ChangePassword(ctx, s, x.form("current"), x.form("password"))
		if err == nil {
			x.keepSession(token)
		}
		return err
	})
}

func (c *Console) endSession(x *request) error {
	return x.onAccount("", "session-ended", func(ctx context.Context, s account.Session) error {
		id, err := uuid.Parse(x.Param("id"))
		if err != nil {
			return account.ErrNotFound
		}
		if err := c.Accounts.Sessions.End(ctx, s, id); !errors.Is(err, account.ErrNotFound) {
			return err
		}
		return nil // it has ended by itself
	})
}

func (c *Console) endOtherSessions(x *request) error {
	return x.onAccount("", "sessions-ended", c.Accounts.Sessions.EndOthers)
}

// factorPage is what the page of the second factor shows.
type factorPage struct {
	account.Session
	Pending   *account.Enrolment // waits for a code; nil for none
	App       template.URL       // opens an app with the pending one
	CodesLeft int
	Fresh     bool
}

func (x *request) factorPage(ctx context.Context) (factorPage, error) {
	s, err := x.session(ctx)
	if err != nil {
		return factorPage{}, err
	}
	page := factorPage{Session: s, Fresh: x.isFresh()}
	if s.HasFactor {
		page.CodesLeft, err = x.console.Accounts.Factors.RecoveryCodesLeft(ctx, s)
		return page, err
	}
	if !page.Fresh {
		return page, nil
	}
	e, err := x.console.Accounts.Factors.Pending(ctx, s)
	if errors.Is(err, account.ErrNotFound) {
		return page, nil
	}
	page.Pending, page.App = &e, template.URL(e.URL) //nolint:gosec // our own, escaped where it is made
	return page, err
}

func (c *Console) showFactor(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	page, err := x.factorPage(ctx)
	if err != nil {
		return err
	}
	return x.page("second-factor", page)
}

func (c *Console) beginFactor(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	s, err := x.session(ctx)
	if err != nil {
		return err
	}
	if _, err := c.Accounts.Factors.Begin(ctx, s); err != nil {
		return err
	}
	return x.done("/account/second-factor", "")
}

// confirmFactor shows the recovery codes, this once.
func (c *Console) confirmFactor(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	page, err := x.factorPage(ctx)
	if err != nil {
		return err
	}
	codes, token, err := c.Accounts.Factors.Confirm(ctx, page.Session, x.form("code"))
	if err != nil {
		return x.refused("second-factor", "code", page, wrongNewCode(err))
	}
	x.keepSession(token)
	return x.page("recovery-codes", codes)
}

// wrongNewCode says what to do about a wrong code where nothing else was typed.
func wrongNewCode(err error) error {
	if errors.Is(err, account.ErrCredentials) {
		return invalid.Field("code", "is not what the app shows now: type the next one, and if that is wrong, too, look whether the phone's clock is right")
	}
	return err
}

func (c *Console) removeFactor(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	page, err := x.factorPage(ctx)
	if err != nil {
		return err
	}
	if err := c.Accounts.Factors.Remove(ctx, page.Session, x.form("password"), x.form("code")); err != nil {
		return x.refused("second-factor", "password", page, err)
	}
	return x.done("/account/second-factor", "factor-removed")
}

func (c *Console) newRecoveryCodes(x *request) error {
	if !x.isConfirmed() {
		return x.confirm(plainQuestion("Make new recovery codes?", "Make new codes", "The codes that you have stop working."), "/account/second-factor")
	}
	ctx, stop := x.wait()
	defer stop()
	s, err := x.session(ctx)
	if err != nil {
		return err
	}
	codes, err := c.Accounts.Factors.NewRecoveryCodes(ctx, s)
	if err != nil {
		return err
	}
	return x.page("recovery-codes", codes)
}
