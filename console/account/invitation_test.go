package account_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
)

func TestSetup(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	first, err := k.Invitations.SetupLink(ctx)
	if err != nil || !strings.HasPrefix(first, "https://queue.example.com/console/setup#t=") {
		t.Fatalf("link %q, %v", first, err)
	}
	second, _ := k.Invitations.SetupLink(ctx)
	offer, err := k.Invitations.Offer(ctx, k.tokenOf(first))
	if err != nil || !offer.Setup || offer.Org != account.MainOrg || offer.HasAccount || offer.Role != "owner" {
		t.Fatalf("offer %+v, %v", offer, err)
	}
	_, err = k.Invitations.Accept(ctx, k.tokenOf(first), account.NewPerson{Email: "x", Name: "", Password: "short"}, browser)
	for _, field := range []string{"organization", "email", "name", "password"} {
		wantInvalid(t, "nothing", err, field)
	}
	in, err := k.Invitations.Accept(ctx, k.tokenOf(first), account.NewPerson{OrgName: "Halls", Email: " Owner@Example.COM",
		Name: "Owner", Password: password}, browser)
	if err != nil || in.Token == "" || in.Pending != "" {
		t.Fatalf("accept %+v, %v", in, err)
	}
	s := k.session(in.Token)
	if s.Email != "owner@example.com" || s.Role != account.Owner || s.Org.ID != account.MainOrg ||
		s.Org.Name != "Halls" || !s.Actor().May(account.Admin) || !s.IsConfirmed(k.clock()) {
		t.Errorf("session %+v", s)
	}
	for name, link := range map[string]string{"used": first, "other": second} {
		_, err := k.Invitations.Accept(ctx, k.tokenOf(link), account.NewPerson{OrgName: "B", Email: "b@example.com", Name: "B",
			Password: password}, browser)
		wantError(t, name, err, account.ErrLink)
	}
	if link, err := k.Invitations.SetupLink(ctx); link != "" || err != nil {
		t.Errorf("with an owner: %q, %v", link, err)
	}
	k.wantVerb(s.Org, "member.join")
}

// TestSetupTogether uses several setup links at once: one works.
func TestSetupTogether(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	var all sync.WaitGroup
	var made atomic.Int32
	var links []string
	for range 8 {
		link, err := k.Invitations.SetupLink(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		links = append(links, link)
	}
	for i, link := range links {
		all.Go(func() {
			n := account.NewPerson{OrgName: "A", Email: string(rune('a'+i)) + "@example.com", Name: "A",
				Password: password}
			_, err := k.Invitations.Accept(t.Context(), k.tokenOf(link), n, browser)
			if err == nil {
				made.Add(1)
			} else if !errors.Is(err, account.ErrLink) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if made.Load() != 1 {
		t.Errorf("%d first owners", made.Load())
	}
}

func TestSetupExpires(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	link, err := k.Invitations.SetupLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k.pass(account.SetupLife - time.Second)
	if _, err := k.Invitations.Offer(t.Context(), k.tokenOf(link)); err != nil {
		t.Error(err)
	}
	k.pass(time.Second)
	_, err = k.Invitations.Offer(t.Context(), k.tokenOf(link))
	wantError(t, "after a day", err, account.ErrLink)
}

func TestInvitation(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	owner, _ := k.owner()
	by := owner.Actor()
	_, _, err := k.Invitations.Invite(ctx, by, "no address", "king")
	wantInvalid(t, "address", err, "email")
	wantInvalid(t, "role", err, "role")
	earlier, _, err := k.Invitations.Invite(ctx, by, "Member@Example.com", account.Viewer)
	if err != nil {
		t.Fatal(err)
	}
	link, mailed, err := k.Invitations.Invite(ctx, by, "member@example.com", account.Operator)
	if err != nil || mailed {
		t.Fatalf("invite: %t, %v", mailed, err)
	}
	_, err = k.Invitations.Offer(ctx, k.tokenOf(earlier))
	wantError(t, "a replaced link", err, account.ErrLink)
	token := k.tokenOf(link)
	in, err := k.Invitations.Accept(ctx, token, account.NewPerson{Email: "other@example.com", Name: "Member", Password: password,
		OrgName: "Taken over"}, browser)
	if err != nil {
		t.Fatal(err)
	}
	member := k.session(in.Token)
	if member.Email != "member@example.com" || member.Role != account.Operator || member.Org.Name != "Halls" {
		t.Errorf("session %+v", member)
	}
	_, err = k.Invitations.Accept(ctx, token, account.NewPerson{Name: "Member", Password: password}, browser)
	wantError(t, "again", err, account.ErrLink)
	for _, wrong := range []string{"", "x", token[:42], token + "A", strings.ToUpper(token)} {
		_, err := k.Invitations.Offer(ctx, wrong)
		wantError(t, "token "+wrong, err, account.ErrLink)
	}
	_, _, err = k.Invitations.Invite(ctx, member.Actor(), "viewer@example.com", account.Viewer)
	wantError(t, "an operator invites", err, account.ErrForbidden)
	_, err = k.Invitations.List(ctx, member.Actor())
	wantError(t, "an operator lists", err, account.ErrForbidden)
}

// TestJoin invites people who already have an account.
func TestJoin(t *testing.T) {
	t.Parallel()
	k := newKit(t, func(o *account.Options) { o.Mailer = nil })
	ctx := t.Context()
	owner, _ := k.owner()
	other := k.tenant("other")
	link, _, err := k.Invitations.Invite(ctx, owner.Actor(), other.Email, account.Viewer)
	if err != nil {
		t.Fatal(err)
	}
	token := k.tokenOf(link)
	if offer, err := k.Invitations.Offer(ctx, token); err != nil || !offer.HasAccount || offer.OrgName != "Halls" {
		t.Errorf("offer %+v, %v", offer, err)
	}
	_, err = k.Invitations.Accept(ctx, token, account.NewPerson{Name: "X", Password: "another password 9"}, browser)
	wantError(t, "an account created twice", err, account.ErrExists)
	wantError(t, "another person", k.Invitations.Join(ctx, owner, token), account.ErrOtherPerson)
	if err := k.Invitations.Join(ctx, other, token); err != nil {
		t.Fatal(err)
	}
	wantError(t, "again", k.Invitations.Join(ctx, other, token), account.ErrLink)
	in, err := k.SignIns.SignIn(ctx, other.Email, password, browser)
	if err != nil {
		t.Fatal(err)
	}
	s := k.session(in.Token)
	list, err := k.Members.Memberships(ctx, s)
	if err != nil || len(list) != 2 || list[0].Name != "Halls" || list[0].Role != "viewer" || list[1].Role != "owner" {
		t.Fatalf("memberships %+v, %v", list, err)
	}
	if err := k.Sessions.Switch(ctx, s, list[1].ID); err != nil {
		t.Fatal(err)
	}
	if s = k.session(in.Token); s.Org.Slug != "other" || s.Role != account.Owner {
		t.Errorf("after the switch %+v", s)
	}
	wantError(t, "switch elsewhere", k.Sessions.Switch(ctx, owner, list[1].ID), account.ErrNotFound)
	wantError(t, "switch nowhere", k.Sessions.Switch(ctx, s, uuid.New()), account.ErrNotFound)
}

// TestOwnerLink creates an owner, and gives an owner who lost their password a new one.
func TestOwnerLink(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	owner, token := k.owner()
	server := account.ServerActor(account.MainOrg)
	_, err := k.Invitations.OwnerLink(ctx, owner.Actor(), "main", "")
	wantError(t, "an owner", err, account.ErrForbidden)
	_, err = k.Invitations.OwnerLink(ctx, server, "nowhere", "")
	wantError(t, "nowhere", err, account.ErrNotFound)
	_, err = k.Invitations.OwnerLink(ctx, server, "main", "x")
	wantInvalid(t, "address", err, "email")

	k.enrol(owner)
	link, err := k.Invitations.OwnerLink(ctx, server, "main", "OWNER@example.com")
	if err != nil {
		t.Fatal(err)
	}
	in, err := k.Invitations.Accept(ctx, k.tokenOf(link), account.NewPerson{Name: "Owner", Password: "quite another one"}, browser)
	if err != nil {
		t.Fatal(err)
	}
	if s := k.session(in.Token); s.Person != owner.Person || s.HasFactor || s.Role != account.Owner {
		t.Errorf("recovered %+v", s)
	}
	_, err = k.Sessions.Get(ctx, token)
	wantError(t, "a session from before", err, account.ErrSignedOut)
	_, err = k.SignIns.SignIn(ctx, "owner@example.com", password, browser)
	wantError(t, "the old password", err, account.ErrCredentials)

	// A link without an address cannot take over an existing account.
	link, err = k.Invitations.OwnerLink(ctx, server, "main", "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = k.Invitations.Accept(ctx, k.tokenOf(link), account.NewPerson{Email: "owner@example.com", Name: "Somebody else",
		Password: password}, browser)
	wantError(t, "another's account", err, account.ErrExists)
	k.wantVerb(owner.Org, "owner.link")
}

func TestInvitationMail(t *testing.T) {
	t.Parallel()
	box := &mailbox{}
	k := newKit(t, func(o *account.Options) { o.Mailer = box })
	owner, _ := k.owner()
	link, mailed, err := k.Invitations.Invite(t.Context(), owner.Actor(), "member@example.com", account.Viewer)
	if err != nil || !mailed || len(box.sent) != 1 || !strings.HasPrefix(box.sent[0], "member@example.com ") ||
		!strings.Contains(box.sent[0], link) {
		t.Errorf("mailed %t, %v: %q", mailed, err, box.sent)
	}
	box.fail = errors.New("no route")
	if link, mailed, err = k.Invitations.Invite(t.Context(), owner.Actor(), "viewer@example.com", account.Viewer); err != nil ||
		mailed || link == "" {
		t.Errorf("without mail: %q, %t, %v", link, mailed, err)
	}
	list, err := k.Invitations.List(t.Context(), owner.Actor())
	if err != nil || len(list) != 2 || list[0].InvitedBy != "owner@example.com" {
		t.Fatalf("invitations %+v, %v", list, err)
	}
	stranger := k.tenant("other")
	wantError(t, "another tenant takes it back", k.Invitations.Revoke(t.Context(), stranger.Actor(), list[0].ID),
		account.ErrNotFound)
	if err := k.Invitations.Revoke(t.Context(), owner.Actor(), list[0].ID); err != nil {
		t.Error(err)
	}
	wantError(t, "again", k.Invitations.Revoke(t.Context(), owner.Actor(), list[0].ID), account.ErrNotFound)
}

// TestInvitationFlood checks that repeated invitations do not flood a mailbox.
func TestInvitationFlood(t *testing.T) {
	t.Parallel()
	box := &mailbox{}
	k := newKit(t, func(o *account.Options) { o.Mailer = box })
	owner, _ := k.owner()
	invite := func(by account.Session) error {
		_, _, err := k.Invitations.Invite(t.Context(), by.Actor(), "member@example.com", account.Viewer)
		return err
	}
	for range 20 {
		if err := invite(owner); err != nil {
			t.Fatal(err)
		}
	}
	var soon *account.RateError
	if err := invite(owner); !errors.As(err, &soon) || len(box.sent) != 20 {
		t.Errorf("the next one: %v; %d mails", err, len(box.sent))
	}
	if err := invite(k.tenant("other")); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	k.pass(2 * time.Minute)
	if err := invite(owner); err != nil {
		t.Errorf("later: %v", err)
	}
}
