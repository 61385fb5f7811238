package account_test

import (
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/oidctest"
)

// oidcKit returns accounts configured with a test issuer.
func oidcKit(t *testing.T) (*kit, *oidctest.Issuer) {
	t.Helper()
	i := oidctest.Start(t)
	return newKit(t, func(o *account.Options) {
		o.OIDC = &account.OIDCConfig{Issuer: i.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret,
			Domains: map[string]account.Role{"staff.example": account.Operator}}
	}), i
}

// through signs in through the issuer.
func (k *kit) through(i *oidctest.Issuer, s *account.Session, claims map[string]any) (account.SignedIn, error) {
	k.t.Helper()
	start, err := k.OIDC.Start(k.t.Context(), s)
	if err != nil {
		k.t.Fatal(err)
	}
	return k.OIDC.Finish(k.t.Context(), start.Cookie, i.Authorize(start.URL, claims), browser)
}

func ownerClaims(subject string) map[string]any {
	return map[string]any{"sub": subject, "email": "Owner@example.com", "email_verified": true, "name": "Owner"}
}

func TestOIDC(t *testing.T) {
	t.Parallel()
	k, i := oidcKit(t)
	owner, before := k.owner()
	in, err := k.through(i, nil, ownerClaims("1"))
	if err != nil || k.session(in.Token).Person != owner.Person || !in.TookOver {
		t.Fatalf("%+v, %v", in, err)
	}
	_, err = k.Sessions.Get(t.Context(), before)
	wantError(t, "a session of the previous holder", err, account.ErrSignedOut)
	_, err = k.SignIns.SignIn(t.Context(), owner.Email, password, browser)
	wantError(t, "the password of the previous holder", err, account.ErrCredentials)
	if token, err := k.People.ChangePassword(t.Context(), k.session(in.Token), "", "a longer one than before"); err != nil {
		t.Errorf("a new password: %v", err)
	} else {
		in.Token = token
	}
	k.wantVerb(owner.Org, "identity.add")
	_, err = k.through(i, nil, ownerClaims("2"))
	wantError(t, "the address of another account", err, account.ErrOIDC)
	renamed := ownerClaims("1")
	renamed["email"] = "new@example.com"
	if in, err = k.through(i, nil, renamed); err != nil || k.session(in.Token).Person != owner.Person || in.TookOver {
		t.Errorf("the same subject: %+v, %v", in, err)
	}
	stranger := map[string]any{"sub": "3", "email": "stranger@example.com", "email_verified": true}
	_, err = k.through(i, nil, stranger)
	wantError(t, "a stranger", err, account.ErrNoAccount)
	unverified := map[string]any{"sub": "4", "email": "newcomer@staff.example", "email_verified": false}
	_, err = k.through(i, nil, unverified)
	wantError(t, "not verified", err, account.ErrOIDC)
	unverified["email_verified"] = true
	if in, err = k.through(i, nil, unverified); err != nil {
		t.Fatal(err)
	}
	if newcomer := k.session(in.Token); newcomer.Role != account.Operator || newcomer.HasPassword ||
		newcomer.Name != "newcomer@staff.example" || newcomer.Org.ID != account.MainOrg {
		t.Errorf("a new member %+v", newcomer)
	}
	_, err = k.SignIns.SignIn(t.Context(), "newcomer@staff.example", "", browser)
	wantError(t, "without a password", err, account.ErrCredentials)
	for name, claims := range map[string]map[string]any{
		"issuer": {"iss": "https://other.example"}, "audience": {"aud": "other"}, "expired": {"exp": 2},
		"nonce": {"nonce": "other"},
	} {
		maps.Copy(claims, map[string]any{"sub": "1"})
		_, err := k.through(i, nil, claims)
		wantError(t, name, err, account.ErrOIDC)
	}
}

// TestOIDCFlow returns from the issuer with altered parameters.
func TestOIDCFlow(t *testing.T) {
	t.Parallel()
	k, i := oidcKit(t)
	ctx := t.Context()
	_, _ = k.owner()
	start, err := k.OIDC.Start(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(start.URL, "redirect_uri="+url.QueryEscape("https://queue.example.com/console/oidc/callback")+
		"&") {
		t.Errorf("people are redirected to %s", start.URL)
	}
	other, err := k.OIDC.Start(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	query := i.Authorize(start.URL, ownerClaims("1"))
	for name, cookie := range map[string]string{"none": "", "another": other.Cookie, "mangled": start.Cookie[1:]} {
		_, err := k.OIDC.Finish(ctx, cookie, query, browser)
		wantError(t, name+" cookie", err, account.ErrSignedOut)
	}
	forged := url.Values{"code": query["code"], "state": {""}}
	_, err = k.OIDC.Finish(ctx, start.Cookie, forged, browser)
	wantError(t, "no state", err, account.ErrSignedOut)
	_, err = k.OIDC.Finish(ctx, start.Cookie, url.Values{"state": query["state"], "error": {"access_denied"}}, browser)
	wantError(t, "denied", err, account.ErrOIDC)
	stolen := url.Values{"code": query["code"], "state": i.Authorize(other.URL, ownerClaims("1"))["state"]}
	_, err = k.OIDC.Finish(ctx, other.Cookie, stolen, browser)
	wantError(t, "a code of another flow", err, account.ErrOIDC)
	late := i.Authorize(start.URL, ownerClaims("1"))
	k.pass(account.OIDCLife + time.Second)
	_, err = k.OIDC.Finish(ctx, start.Cookie, late, browser)
	wantError(t, "late", err, account.ErrSignedOut)
}

func TestOIDCConfirm(t *testing.T) {
	t.Parallel()
	k, i := oidcKit(t)
	owner, _ := k.owner()
	_, _, token := k.enrol(owner)
	member := k.member(owner.Actor(), "member@example.com", account.Viewer)
	k.pass(time.Hour)
	claims := ownerClaims("1")
	_, err := k.through(i, &owner, claims)
	wantError(t, "without a time", err, account.ErrOIDC)
	claims["auth_time"] = k.clock().Add(-6 * time.Minute).Unix()
	_, err = k.through(i, &owner, claims)
	wantError(t, "long ago", err, account.ErrOIDC)
	claims["auth_time"] = k.clock().Unix()
	_, err = k.through(i, &member, claims)
	wantError(t, "another person", err, account.ErrOIDC)
	in, err := k.through(i, &owner, claims)
	if err != nil || !k.session(in.Token).IsConfirmed(k.clock()) || k.session(in.Token).ID != owner.ID {
		t.Errorf("confirmed %+v, %v", in, err)
	}
	_, err = k.Sessions.Get(t.Context(), token)
	wantError(t, "the token from before", err, account.ErrSignedOut)
	if in, err = k.SignIns.SignIn(t.Context(), owner.Email, password, browser); err != nil || in.Pending == "" {
		t.Errorf("the signed-in person lost the password: %+v, %v", in, err)
	}
	if in, err = k.through(i, nil, ownerClaims("1")); err != nil || in.Token != "" || in.Pending == "" {
		t.Errorf("a second factor is asked for after the issuer, too: %+v, %v", in, err)
	}
}

// TestOIDCDown starts while the issuer is down, and asks it again later.
func TestOIDCDown(t *testing.T) {
	t.Parallel()
	k, i := oidcKit(t)
	i.SetDown(true)
	_, err := k.OIDC.Start(t.Context(), nil)
	wantError(t, "down", err, account.ErrOIDC)
	i.SetDown(false)
	_, err = k.OIDC.Start(t.Context(), nil)
	wantError(t, "a moment later", err, account.ErrOIDC)
	k.pass(10 * time.Second)
	if _, err = k.OIDC.Start(t.Context(), nil); err != nil {
		t.Error(err)
	}
	none := newKit(t)
	_, err = none.OIDC.Start(t.Context(), nil)
	wantError(t, "not configured", err, account.ErrNoOIDC)
	if _, ok := none.OIDC.Name(); ok {
		t.Error("it has a name")
	}
	if name, ok := k.OIDC.Name(); !ok || name == "" {
		t.Error("no name")
	}
}
