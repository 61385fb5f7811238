package account_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/proofline/proofline/console/account"
)

// code returns the code that an enrolled app shows, the given number of time steps from now.
func (k *kit) code(e account.Enrolment, steps int) string {
	k.t.Helper()
	code, err := totp.GenerateCode(strings.ReplaceAll(e.Secret, " ", ""),
		k.clock().Add(time.Duration(steps)*30*time.Second))
	if err != nil {
		k.t.Fatal(err)
	}
	return code
}

// enrol gives a person a second factor.
func (k *kit) enrol(s account.Session) (e account.Enrolment, recovery []string, token string) {
	k.t.Helper()
	e, err := k.Factors.Begin(k.t.Context(), s)
	if err != nil {
		k.t.Fatal(err)
	}
	recovery, token, err = k.Factors.Confirm(k.t.Context(), s, k.code(e, 0))
	if err != nil {
		k.t.Fatal(err)
	}
	return e, recovery, token
}

func TestFactor(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	owner, before := k.owner()
	_, err := k.Factors.Pending(ctx, owner)
	wantError(t, "without a pending factor", err, account.ErrNotFound)
	_, _, err = k.Factors.Confirm(ctx, owner, "123456")
	wantError(t, "confirm without a pending factor", err, account.ErrNotFound)
	abandoned, err := k.Factors.Begin(ctx, owner)
	if err != nil {
		t.Fatal(err)
	}
	begun, err := k.Factors.Begin(ctx, owner)
	if err != nil || begun.Secret == abandoned.Secret {
		t.Fatalf("begun %+v, %v", begun, err)
	}
	if again, err := k.Factors.Pending(ctx, owner); err != nil || again != begun {
		t.Errorf("pending %+v, %v, want %+v", again, err, begun)
	}
	if !strings.HasPrefix(begun.URL, "otpauth://totp/Proofline%20queue.example.com:owner@example.com?secret=") ||
		begun.QR.Size < 40 || !strings.HasPrefix(begun.QR.Path, "M4 4h7v1h-7z") {
		t.Errorf("enrolment %+v", begun)
	}
	_, _, err = k.Factors.Confirm(ctx, owner, k.code(abandoned, 0))
	wantError(t, "code of another secret", err, account.ErrCredentials)
	if in, err := k.SignIns.SignIn(ctx, owner.Email, password, browser); err != nil || in.Token == "" {
		t.Errorf("an unconfirmed factor is required: %+v, %v", in, err)
	}
	codes, token, err := k.Factors.Confirm(ctx, owner, k.code(begun, 0)[:3]+" "+k.code(begun, 0)[3:])
	if err != nil || len(codes) != account.RecoveryCodes || len(codes[0]) != 19 {
		t.Fatalf("codes %q, %v", codes, err)
	}
	_, err = k.Sessions.Get(ctx, before)
	wantError(t, "the token from before", err, account.ErrSignedOut)
	if s := k.session(token); !s.HasFactor {
		t.Errorf("session %+v", s)
	}
	if list, _ := k.Sessions.List(ctx, owner); len(list) != 1 {
		t.Errorf("%d sessions are left", len(list))
	}
	if left, err := k.Factors.RecoveryCodesLeft(ctx, owner); err != nil || left != 10 {
		t.Errorf("%d recovery codes, %v", left, err)
	}
	k.wantVerb(owner.Org, "second-factor.enable")
}

func TestSignInWithCode(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	owner, _ := k.owner()
	e, recovery, _ := k.enrol(owner)
	in, err := k.SignIns.SignIn(ctx, owner.Email, password, browser)
	if err != nil || in.Token != "" || in.Known != "" || in.Pending == "" {
		t.Fatalf("sign in %+v, %v", in, err)
	}
	try := func(code string) error {
		done, err := k.SignIns.EnterCode(ctx, in.Pending, code, browser)
		if err == nil && k.session(done.Token).Person != owner.Person {
			t.Errorf("code %q works for another person", code)
		}
		return err
	}
	wantError(t, "the code of the enrolment again", try(k.code(e, 0)), account.ErrCredentials)
	wantError(t, "the code before it", try(k.code(e, -1)), account.ErrCredentials)
	wantError(t, "a code of later", try(k.code(e, 2)), account.ErrCredentials)
	if err := try(k.code(e, 1)); err != nil {
		t.Error(err)
	}
	wantError(t, "replay", try(k.code(e, 1)), account.ErrCredentials)
	k.pass(5 * time.Minute)
	if err := try(" " + strings.ToUpper(recovery[3]) + " "); err != nil {
		t.Error(err)
	}
	wantError(t, "a recovery code again", try(recovery[3]), account.ErrCredentials)
	if err := try(strings.ReplaceAll(recovery[4], "-", "")); err != nil {
		t.Error(err)
	}
	wantError(t, "nothing", try(""), account.ErrCredentials)
	k.pass(5*time.Minute + time.Second)
	wantError(t, "too late", try(k.code(e, 0)), account.ErrSignedOut)
	for _, wrong := range []string{"", "x", in.Pending[1:], in.Known} {
		_, err := k.SignIns.EnterCode(ctx, wrong, k.code(e, 0), browser)
		wantError(t, "pending "+wrong, err, account.ErrSignedOut)
	}
}

// TestPendingVoid changes the password while the sign-in waits for a code.
func TestPendingVoid(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	owner, _ := k.owner()
	e, _, _ := k.enrol(owner)
	in, err := k.SignIns.SignIn(ctx, owner.Email, password, browser)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.People.ChangePassword(ctx, owner, password, "something new here"); err != nil {
		t.Fatal(err)
	}
	k.pass(time.Minute)
	_, err = k.SignIns.EnterCode(ctx, in.Pending, k.code(e, 0), browser)
	wantError(t, "with the old password", err, account.ErrSignedOut)
}

func TestCodeLimit(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	owner, _ := k.owner()
	knownBefore, err := k.SignIns.SignIn(ctx, owner.Email, password, browser)
	if err != nil {
		t.Fatal(err)
	}
	e, recovery, _ := k.enrol(owner)
	in, err := k.SignIns.SignIn(ctx, owner.Email, password, browser)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		_, err := k.SignIns.EnterCode(ctx, in.Pending, "000000", browser)
		wantError(t, "wrong", err, account.ErrCredentials)
	}
	for _, code := range []string{k.code(e, 1), recovery[0]} {
		_, err = k.SignIns.EnterCode(ctx, in.Pending, code, browser)
		wantWait(t, err, time.Second)
	}
	known := browser // an attacker with the password does not lock out the person's own browser
	known.Known = knownBefore.Known
	if _, err = k.SignIns.EnterCode(ctx, in.Pending, recovery[1], known); err != nil {
		t.Errorf("a known browser: %v", err)
	}
	k.pass(time.Second)
	if _, err = k.SignIns.EnterCode(ctx, in.Pending, recovery[0], browser); err != nil {
		t.Error(err)
	}
}

func TestRemoveFactor(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	owner, _ := k.owner()
	_, err := k.Factors.NewRecoveryCodes(ctx, owner)
	wantError(t, "codes without a factor", err, account.ErrNotFound)
	wantError(t, "remove without a factor", k.Factors.Remove(ctx, owner, password, "123456"), account.ErrNotFound)
	e, old, token := k.enrol(owner)
	owner = k.session(token)
	codes, err := k.Factors.NewRecoveryCodes(ctx, owner)
	if err != nil || len(codes) != 10 || codes[0] == old[0] {
		t.Fatalf("codes %v, %v", codes, err)
	}
	k.pass(time.Minute)
	wantError(t, "wrong password", k.Factors.Remove(ctx, owner, "wrong", k.code(e, 0)), account.ErrCredentials)
	wantError(t, "wrong code", k.Factors.Remove(ctx, owner, password, "000000"), account.ErrCredentials)
	wantError(t, "replaced recovery code", k.Factors.Remove(ctx, owner, password, old[0]), account.ErrCredentials)
	if err := k.Factors.Remove(ctx, owner, password, k.code(e, 0)); err != nil {
		t.Fatal(err)
	}
	if in, err := k.SignIns.SignIn(ctx, owner.Email, password, browser); err != nil || in.Token == "" {
		t.Errorf("sign in without factor %+v, %v", in, err)
	}
	if left, _ := k.Factors.RecoveryCodesLeft(ctx, owner); left != 0 {
		t.Errorf("%d recovery codes are left", left)
	}
}

// TestRequireFactor checks that members without a required second factor have no permissions.
func TestRequireFactor(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	owner, _ := k.owner()
	viewer := k.member(owner.Actor(), "member@example.com", account.Viewer)
	yes := true
	_, err := k.Organizations.Change(ctx, owner.Actor(), account.OrganizationChange{RequireFactor: &yes})
	wantInvalid(t, "without a factor of their own", err, "require_second_factor")
	k.enrol(owner)
	if o, err := k.Organizations.Change(ctx, owner.Actor(),
		account.OrganizationChange{RequireFactor: &yes}); err != nil || !o.RequireFactor || o.Name != "Halls" {
		t.Fatalf("%+v, %v", o, err)
	}
	in, err := k.SignIns.SignIn(ctx, viewer.Email, password, browser)
	if err != nil {
		t.Fatal(err)
	}
	viewer = k.session(in.Token)
	if !viewer.MustEnrol() || viewer.Actor().May(account.Read) {
		t.Errorf("viewer %+v", viewer)
	}
	_, err = k.Members.List(ctx, viewer.Actor())
	wantError(t, "members", err, account.ErrForbidden)
	_, _, token := k.enrol(viewer)
	if viewer = k.session(token); viewer.MustEnrol() || !viewer.Actor().May(account.Read) {
		t.Errorf("enrolled viewer %+v", viewer)
	}
}
