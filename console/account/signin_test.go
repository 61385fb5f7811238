package account_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/console/account"
)

// wantWait checks that an attempt was rejected as too early.
func wantWait(t *testing.T, err error, wait time.Duration) {
	t.Helper()
	soon := (*account.RateError)(nil)
	if !errors.As(err, &soon) || soon.Wait != wait {
		t.Errorf("%v, want to wait %v", err, wait)
	}
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	owner, first := k.owner()
	in, err := k.SignIns.SignIn(ctx, " OWNER@example.com", password, browser)
	if err != nil || in.Token == first || in.Known == "" {
		t.Fatalf("sign in %+v, %v", in, err)
	}
	s := k.session(in.Token)
	if s.Person != owner.Person || s.ID == owner.ID || s.Name != "Owner" || !s.HasPassword || s.HasFactor {
		t.Errorf("session %+v", s)
	}
	for _, try := range [][2]string{{"owner@example.com", "wrong"}, {"owner@example.com", ""},
		{"member@example.com", password}, {"", password}, {"owner", password}} {
		_, err := k.SignIns.SignIn(ctx, try[0], try[1], browser)
		if err == nil || err.Error() != account.ErrCredentials.Error() {
			t.Errorf("%q: %v", try, err)
		}
	}
	list, err := k.Sessions.List(ctx, s)
	if err != nil || len(list) != 2 || list[0].Device != "Firefox on Linux" || list[0].Current == list[1].Current {
		t.Errorf("sessions %+v, %v", list, err)
	}
	k.wantVerb(owner.Org, "sign-in")
}

// stranger returns a browser in the nth of many networks.
func stranger(n int) account.Client {
	return account.Client{Addr: netip.AddrFrom4([4]byte{203, 0, byte(n >> 8), byte(n)})}
}

// TestGuessesFromOneHost checks that a host that guesses for hours gets few guesses, and does not
// lock the person out elsewhere.
func TestGuessesFromOneHost(t *testing.T) {
	t.Parallel()
	for hours, most := range map[int]int{0: 10, 1: 20, 12: 130} {
		k := newKit(t)
		owner, _ := k.owner()
		guesses := 0
		for range hours*60*6 + 60 { // one every ten seconds
			if _, err := k.SignIns.SignIn(t.Context(), owner.Email, "wrong", stranger(1)); errors.Is(err,
				account.ErrCredentials) {
				guesses++
			}
			k.pass(10 * time.Second)
		}
		if guesses > most+2 || guesses < 10 {
			t.Errorf("%d guesses in %d hours, want at most %d", guesses, hours, most)
		}
		if _, err := k.SignIns.SignIn(t.Context(), owner.Email, password, stranger(1000)); err != nil {
			t.Errorf("after %d hours of guesses: %v", hours, err)
		}
	}
}

// TestPairLimit checks that guesses from one network at one account have to wait longer and longer.
func TestPairLimit(t *testing.T) {
	t.Parallel()
	for _, email := range []string{"owner@example.com", "nobody@example.com"} {
		k := newKit(t)
		owner, _ := k.owner()
		guess := func(pass string) error {
			_, err := k.SignIns.SignIn(t.Context(), email, pass, stranger(1))
			return err
		}
		for range 5 {
			wantError(t, "guess", guess("wrong"), account.ErrCredentials)
		}
		for _, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
			16 * time.Second} {
			wantWait(t, guess(password), wait)
			k.pass(wait)
			wantError(t, "guess", guess("wrong"), account.ErrCredentials)
		}
		wantWait(t, guess(password), 6*time.Minute)
		k.pass(6 * time.Minute)
		if err := guess(password); (err == nil) != (email == owner.Email) {
			t.Errorf("%s with the right password after a wait: %v", email, err)
		}
		k.Close()
		if got := slices.Contains(k.log.verbs(owner.Org), "sign-in.refused"); got != (email == owner.Email) {
			t.Errorf("recorded %v", k.log.verbs(owner.Org))
		}
	}
}

// TestAccountLimit guesses at one account from many networks: they share a small number of guesses,
// and the person can still sign in in two ways.
func TestAccountLimit(t *testing.T) {
	t.Parallel()
	for _, email := range []string{"owner@example.com", "nobody@example.com"} {
		k := newKit(t)
		owner, _ := k.owner()
		in, err := k.SignIns.SignIn(t.Context(), owner.Email, password, browser)
		if err != nil {
			t.Fatal(err)
		}
		guesses := 0
		for n := range 1000 {
			switch _, err := k.SignIns.SignIn(t.Context(), email, "wrong", stranger(n)); {
			case errors.Is(err, account.ErrCredentials):
				guesses++
			case !errors.As(err, new(*account.RateError)):
				t.Fatal(err)
			}
		}
		if guesses != 50 {
			t.Errorf("%d guesses at once, want 50", guesses)
		}
		if email != owner.Email {
			continue
		}
		_, err = k.SignIns.SignIn(t.Context(), email, password, stranger(2000))
		wantWait(t, err, time.Second)
		known := browser
		known.Known = in.Known
		if _, err := k.SignIns.SignIn(t.Context(), email, password, known); err != nil {
			t.Errorf("the person's own browser is locked out: %v", err)
		}
		link, err := k.SignInLinks.Make(t.Context(), account.ServerActor(account.MainOrg), email)
		if err != nil {
			t.Fatal(err)
		}
		unlocked := stranger(2000)
		if unlocked.Known, err = k.SignInLinks.Unlock(t.Context(), k.tokenOf(link)); err != nil {
			t.Fatal(err)
		}
		if _, err := k.SignIns.SignIn(t.Context(), email, "wrong", unlocked); !errors.Is(err, account.ErrCredentials) {
			t.Errorf("the link replaces the password: %v", err)
		}
		if _, err := k.SignIns.SignIn(t.Context(), email, password, unlocked); err != nil {
			t.Errorf("the browser that opened the link is locked out: %v", err)
		}
		_, err = k.SignIns.SignIn(t.Context(), email, password, stranger(2001))
		wantWait(t, err, time.Second) // other browsers still have to wait
	}
}

// TestSignInLink checks that a link works once, for an hour and for one address, and that only the
// administrator can create one.
func TestSignInLink(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	owner, _ := k.owner()
	link, err := k.SignInLinks.Make(ctx, account.ServerActor(account.MainOrg), owner.Email)
	if err != nil {
		t.Fatal(err)
	}
	token := k.tokenOf(link)
	for _, wrong := range []string{"", "x", token[:len(token)-2], token + "A", strings.Repeat("A", 43)} {
		_, err := k.SignInLinks.Unlock(ctx, wrong)
		wantError(t, "a wrong token", err, account.ErrLink)
	}
	if _, err := k.SignInLinks.Unlock(ctx, token); err != nil {
		t.Fatal(err)
	}
	_, err = k.SignInLinks.Unlock(ctx, token)
	wantError(t, "again", err, account.ErrLink)
	if link, err = k.SignInLinks.Make(ctx, account.ServerActor(account.MainOrg), owner.Email); err != nil {
		t.Fatal(err)
	}
	k.pass(account.SignInLinkLife + time.Second)
	_, err = k.SignInLinks.Unlock(ctx, k.tokenOf(link))
	wantError(t, "too late", err, account.ErrLink)
	_, err = k.SignInLinks.Make(ctx, owner.Actor(), owner.Email)
	wantError(t, "an owner", err, account.ErrForbidden)
	_, err = k.SignInLinks.Make(ctx, account.ServerActor(account.MainOrg), "nobody@example.com")
	wantError(t, "for an unknown address", err, account.ErrNotFound)
	k.wantVerb(owner.Org, "sign-in.link")
}

// TestMailSignInLink mails links to people with an account, without revealing which addresses have
// one.
func TestMailSignInLink(t *testing.T) {
	t.Parallel()
	box := &mailbox{}
	k := newKit(t, func(o *account.Options) { o.Mailer = box })
	ctx := t.Context()
	owner, _ := k.owner()
	for _, email := range []string{" OWNER@example.com", "nobody@example.com"} {
		for range 3 {
			if err := k.SignInLinks.Mail(ctx, email, stranger(1)); err != nil {
				t.Fatal(err)
			}
		}
		wantWait(t, k.SignInLinks.Mail(ctx, email, stranger(2)), time.Second)
	}
	k.Close()
	if len(box.sent) != 3 || !strings.HasPrefix(box.sent[0], owner.Email+" ") {
		t.Fatalf("sent %q", box.sent)
	}
	_, token, _ := strings.Cut(box.sent[0], "#t=")
	token, _, _ = strings.Cut(token, "\n")
	if _, err := k.SignInLinks.Unlock(ctx, token); err != nil {
		t.Errorf("the mailed link: %v", err)
	}
	for n := range 4 {
		if err := k.SignInLinks.Mail(ctx, fmt.Sprintf("a%d@example.com", n), stranger(1)); err != nil {
			t.Fatal(err)
		}
	}
	wantWait(t, k.SignInLinks.Mail(ctx, "other@example.com", stranger(1)), time.Second)
	without := newKit(t)
	wantError(t, "without mail", without.SignInLinks.Mail(ctx, owner.Email, stranger(1)), account.ErrForbidden)
}

// TestNetworkLimit guesses at many accounts from one network.
func TestNetworkLimit(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	_, _ = k.owner()
	in, err := k.SignIns.SignIn(t.Context(), "owner@example.com", password, browser)
	if err != nil {
		t.Fatal(err)
	}
	guess := func(addr string, i int) error {
		_, err := k.SignIns.SignIn(t.Context(), string(rune('a'+i%26))+string(rune('a'+i/26))+"@example.com", "wrong",
			account.Client{Addr: netip.MustParseAddr(addr)})
		return err
	}
	for i := range 30 {
		wantError(t, "guess", guess("2001:db8:1:"+string(rune('1'+i%9))+"::1", i), account.ErrCredentials)
	}
	wantWait(t, guess("2001:db8:1:ffff::1", 31), time.Second)
	wantError(t, "another network", guess("2001:db8:2::1", 32), account.ErrCredentials)
	wantError(t, "an IPv4 address", guess("192.0.2.1", 33), account.ErrCredentials)
	for i := range 29 {
		wantError(t, "guess", guess("::ffff:192.0.2.1", 34+i), account.ErrCredentials)
	}
	wantWait(t, guess("192.0.2.1", 64), time.Second)
	known := account.Client{Addr: netip.MustParseAddr("192.0.2.1"), Known: in.Known}
	if _, err := k.SignIns.SignIn(t.Context(), "owner@example.com", password, known); err != nil {
		t.Errorf("a known browser behind the same address: %v", err)
	}
	if _, err := k.SignIns.SignIn(t.Context(), "owner@example.com", password,
		account.Client{Addr: netip.MustParseAddr("192.0.2.2")}); err != nil {
		t.Errorf("a neighbour: %v", err)
	}
	for range 100 { // frequent successful sign-ins are not guesses
		if _, err := k.SignIns.SignIn(t.Context(), "owner@example.com", password, browser); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLimitTogether makes concurrent guesses.
func TestLimitTogether(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	_, _ = k.owner()
	tried := make(chan error)
	for range 40 {
		go func() {
			_, err := k.SignIns.SignIn(t.Context(), "owner@example.com", "wrong",
				account.Client{Addr: netip.AddrFrom4([4]byte{10, 0, 0, 1})})
			tried <- err
		}()
	}
	checked := 0
	for range 40 {
		if errors.Is(<-tried, account.ErrCredentials) {
			checked++
		}
	}
	if checked != 5 {
		t.Errorf("%d passwords were checked", checked)
	}
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	owner, token := k.owner()
	k.pass(account.ConfirmedLife)
	if k.session(token).IsConfirmed(k.clock()) {
		t.Error("the confirmation does not expire")
	}
	_, err := k.People.Confirm(ctx, owner, "wrong")
	wantError(t, "wrong password", err, account.ErrCredentials)
	rotated, err := k.People.Confirm(ctx, owner, password)
	if err != nil || rotated == token {
		t.Fatalf("confirm: %v", err)
	}
	if s := k.session(rotated); !s.IsConfirmed(k.clock()) || s.ID != owner.ID {
		t.Errorf("session %+v", s)
	}
	_, err = k.Sessions.Get(ctx, token)
	wantError(t, "the token from before", err, account.ErrSignedOut)
	for range 5 {
		_, err := k.People.Confirm(ctx, owner, "wrong")
		wantError(t, "wrong password", err, account.ErrCredentials)
	}
	_, err = k.People.Confirm(ctx, owner, password)
	wantWait(t, err, time.Second)
}

func TestSessionEnds(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	owner, token := k.owner()
	k.pass(12*time.Hour - time.Second)
	if s := k.session(token); !s.Seen.Equal(owner.Seen) {
		t.Errorf("seen %v", s.Seen)
	}
	k.pass(12*time.Hour - time.Second)
	k.session(token) // marks the session as used
	k.pass(12 * time.Hour)
	_, err := k.Sessions.Get(ctx, token)
	wantError(t, "idle", err, account.ErrSignedOut)

	in, err := k.SignIns.SignIn(ctx, owner.Email, password, browser)
	if err != nil {
		t.Fatal(err)
	}
	for range 14 {
		k.pass(12*time.Hour - time.Second)
		k.session(in.Token)
	}
	k.pass(14 * time.Second)
	_, err = k.Sessions.Get(ctx, in.Token)
	wantError(t, "after a week", err, account.ErrSignedOut)
}

func TestEndSessions(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	owner, first := k.owner()
	member := k.member(owner.Actor(), "member@example.com", account.Viewer)
	var tokens []string
	for range 3 {
		in, err := k.SignIns.SignIn(ctx, owner.Email, password, browser)
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, in.Token)
	}
	wantError(t, "another person's", k.Sessions.End(ctx, member, owner.ID), account.ErrNotFound)
	if err := k.Sessions.End(ctx, owner, k.session(tokens[0]).ID); err != nil {
		t.Error(err)
	}
	if err := k.Sessions.SignOut(ctx, tokens[1]); err != nil {
		t.Error(err)
	}
	if err := k.Sessions.SignOut(ctx, tokens[1]); err != nil {
		t.Errorf("again: %v", err)
	}
	for _, token := range append(tokens[:2:2], "", "x") {
		_, err := k.Sessions.Get(ctx, token)
		wantError(t, "ended", err, account.ErrSignedOut)
	}
	if err := k.Sessions.EndOthers(ctx, owner); err != nil {
		t.Error(err)
	}
	k.session(first)
	_, err := k.Sessions.Get(ctx, tokens[2])
	wantError(t, "other", err, account.ErrSignedOut)
	if list, _ := k.Sessions.List(ctx, member); len(list) != 1 {
		t.Errorf("sessions of another person: %v", list)
	}
}

func TestChangePassword(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	owner, first := k.owner()
	in, err := k.SignIns.SignIn(ctx, owner.Email, password, browser)
	if err != nil {
		t.Fatal(err)
	}
	_, err = k.People.ChangePassword(ctx, owner, password, "too short")
	wantInvalid(t, "short", err, "password")
	_, err = k.People.ChangePassword(ctx, owner, "wrong", "a longer one than before")
	wantError(t, "wrong", err, account.ErrCredentials)
	token, err := k.People.ChangePassword(ctx, owner, password, "a longer one than before")
	if err != nil {
		t.Fatal(err)
	}
	k.session(token)
	for _, ended := range []string{first, in.Token} {
		_, err := k.Sessions.Get(ctx, ended)
		wantError(t, "a token from before", err, account.ErrSignedOut)
	}
	_, err = k.SignIns.SignIn(ctx, owner.Email, password, browser)
	wantError(t, "the old password", err, account.ErrCredentials)
	if _, err = k.SignIns.SignIn(ctx, owner.Email, "a longer one than before", browser); err != nil {
		t.Error(err)
	}
	if err := k.People.Rename(ctx, owner, " Box Office "); err != nil || k.session(token).Name != "Box Office" {
		t.Errorf("name %q, %v", k.session(token).Name, err)
	}
	wantInvalid(t, "no name", k.People.Rename(ctx, owner, "A\nB"), "name")
}

func TestRateError(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]string{
		time.Millisecond: "wait 1 second", 16 * time.Second: "wait 16 seconds", time.Minute + 1: "wait 2 minutes",
		6 * time.Minute: "wait 6 minutes",
	} {
		if got := (&account.RateError{Wait: wait}).Error(); got != "too many attempts: "+want {
			t.Errorf("%v: %s", wait, got)
		}
	}
}

// TestKnownBrowserDoesNotWait signs in from a known browser, and confirms a session, while guesses from
// unknown browsers keep the server busy.
func TestKnownBrowserDoesNotWait(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	_, _ = k.owner()
	in, err := k.SignIns.SignIn(t.Context(), "owner@example.com", password, browser)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Occupy()()
	soon, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	known := account.Client{Addr: browser.Addr, UserAgent: browser.UserAgent, Known: in.Known}
	if _, err := k.SignIns.SignIn(soon, "owner@example.com", password, known); err != nil {
		t.Errorf("from a known browser: %v", err)
	}
	s, err := k.Sessions.Get(soon, in.Token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.People.Confirm(soon, s, password); err != nil {
		t.Errorf("confirm: %v", err)
	}
	now, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := k.SignIns.SignIn(now, "owner@example.com", password, browser); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("from another browser: %v, want it to wait", err)
	}
}
