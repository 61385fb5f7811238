package site_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/site"
)

// TestLife takes a site from creation to deletion, and creates another of the same name.
func TestLife(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ctx := t.Context()
	s.room(owner, "sale", "", "https://shop.example.com/")
	made := s.create(owner, "shop", "\r\n"+strings.ReplaceAll(rulesFor(saleURL), "\n", "\r\n")+"\t \n\n")
	if made.Name != "shop" || made.Version != 1 || made.By != owner.Name || made.Org != owner.Org || string(made.Rules) != "\n"+rulesFor(saleURL) || made.Changed.IsZero() {
		t.Errorf("made %+v", made)
	}
	want(t, "hosts", made.Hosts, "shop.example.com")
	want(t, "rooms", made.Rooms, saleURL)
	if _, err := s.Create(ctx, owner, "shop", []byte(open)); !errors.Is(err, account.ErrExists) {
		t.Errorf("made twice: %v", err)
	}
	got, err := s.Site(ctx, viewer, "shop")
	if diff := cmp.Diff(made, got); err != nil || diff != "" {
		t.Errorf("%v, read (-made +read)\n%s", err, diff)
	}

	changed, err := s.Update(ctx, owner, "shop", 1, []byte("{\t\"version\": 1}"))
	if err != nil || changed.Version != 2 || string(changed.Rules) != "{  \"version\": 1}\n" || len(changed.Hosts)+len(changed.Rooms) != 0 {
		t.Errorf("changed %+v, %v", changed, err)
	}
	if same, err := s.Update(ctx, owner, "shop", 0, []byte("{  \"version\": 1}\r\n")); err != nil || same.Version != 2 {
		t.Errorf("the same again %+v, %v", same, err)
	}
	if _, err := s.Update(ctx, owner, "shop", 1, []byte(open)); !errors.Is(err, control.ErrChanged) {
		t.Errorf("update of an old version: %v", err)
	}
	if _, err := s.Update(ctx, owner, "other", 0, []byte(open)); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("update of an unknown site: %v", err)
	}
	former, err := s.Version(ctx, viewer, "shop", 1)
	if diff := cmp.Diff(string(made.Rules), string(former.Rules)); err != nil || diff != "" || former.Version != 1 {
		t.Errorf("version %+v, %v", former, err)
	}
	if back, err := s.Restore(ctx, owner, "shop", 2, 1); err != nil || back.Version != 3 || string(back.Rules) != string(made.Rules) {
		t.Errorf("restored %+v, %v", back, err)
	}
	if _, err := s.Restore(ctx, owner, "shop", 2, 1); !errors.Is(err, control.ErrChanged) {
		t.Errorf("restore over an old version: %v", err)
	}
	if _, err := s.Restore(ctx, owner, "shop", 0, 9); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("restored an unknown version: %v", err)
	}

	if err := s.Delete(ctx, owner, "shop"); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, owner, "shop"); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	for name, read := range map[string]func() error{
		"site":       func() error { _, err := s.Site(ctx, owner, "shop"); return err },
		"signed":     func() error { _, err := s.Signed(ctx, owner, "shop"); return err },
		"history":    func() error { _, err := s.History(ctx, owner, "shop"); return err },
		"version":    func() error { _, err := s.Version(ctx, owner, "shop", 1); return err },
		"connectors": func() error { _, err := s.Connectors(ctx, owner, "shop"); return err },
	} {
		if err := read(); !errors.Is(err, account.ErrNotFound) {
			t.Errorf("%s of a deleted site: %v", name, err)
		}
	}
	if list, err := s.List(ctx, owner); err != nil || len(list) != 0 {
		t.Errorf("deleted and listed: %+v, %v", list, err)
	}
	if next := s.create(owner, "shop", open); next.Version != 4 {
		t.Errorf("the next site begins with version %d", next.Version)
	}
	versions, err := s.History(ctx, viewer, "shop")
	var lines []string
	for _, v := range versions {
		lines = append(lines, fmt.Sprint(v.Number, " ", v.Size, " ", v.By))
	}
	want(t, fmt.Sprintf("history, %v", err), lines, "4 59 owner@example.com", fmt.Sprintf("3 %d owner@example.com", len(made.Rules)), "2 17 owner@example.com", fmt.Sprintf("1 %d owner@example.com", len(made.Rules)))
	want(t, "activity", s.verbs(viewer, "shop"), "site.create done", "site.delete done", "site.restore done", "site.update done", "site.create refused", "site.create done")
}

// TestLostUpdate checks that of concurrent changes to the same version one succeeds.
func TestLostUpdate(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.create(owner, "shop", open)
	var all sync.WaitGroup
	done := make(chan uint64, 8)
	for i := range 8 {
		all.Go(func() {
			got, err := s.Update(t.Context(), owner, "shop", 1, fmt.Appendf(nil, `{"version": 1, "hosts": ["h%d.example.com"]}`, i))
			if err == nil {
				done <- got.Version
			} else if !errors.Is(err, control.ErrChanged) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	close(done)
	if version := <-done; version != 2 {
		t.Errorf("version %d", version)
	}
	if version, more := <-done; more {
		t.Errorf("another change, version %d", version)
	}
}

// TestUpdates checks that concurrent unconditional changes all succeed, one after the other.
func TestUpdates(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.create(owner, "shop", open)
	var all sync.WaitGroup
	var mu sync.Mutex
	seen := map[uint64]bool{}
	for i := range 8 {
		all.Go(func() {
			got, err := s.Update(t.Context(), owner, "shop", 0, fmt.Appendf(nil, `{"version": 1, "hosts": ["h%d.example.com"]}`, i))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[got.Version] = true
		})
	}
	all.Wait()
	if got, err := s.Site(t.Context(), owner, "shop"); err != nil || got.Version != 9 || len(seen) != 8 {
		t.Errorf("version %d, %d versions, %v", got.Version, len(seen), err)
	}
}

// operations lists all operations on one site, by the scope that they need.
func (s *server) operations(name string) map[account.Scope]map[string]func(account.Actor) error {
	ctx := s.Context()
	second := func(_ any, err error) error { return err }
	return map[account.Scope]map[string]func(account.Actor) error{
		account.Operate: {
			"update":  func(a account.Actor) error { return second(s.Update(ctx, a, name, 0, []byte(open))) },
			"restore": func(a account.Actor) error { return second(s.Restore(ctx, a, name, 0, 1)) },
			"delete":  func(a account.Actor) error { return s.Delete(ctx, a, name) },
		},
		account.Read: {
			"site":       func(a account.Actor) error { return second(s.Site(ctx, a, name)) },
			"history":    func(a account.Actor) error { return second(s.History(ctx, a, name)) },
			"version":    func(a account.Actor) error { return second(s.Version(ctx, a, name, 1)) },
			"connectors": func(a account.Actor) error { return second(s.Connectors(ctx, a, name)) },
			"check": func(a account.Actor) error {
				return second(s.Check(ctx, a, name, nil, []string{"https://shop.example.com/"}, when))
			},
		},
		account.Connect: {
			"signed": func(a account.Actor) error { return second(s.Signed(ctx, a, name)) },
		},
	}
}

// TestScopes checks that each operation needs its scope, and that sites of other organizations do
// not exist for an actor.
func TestScopes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	made := s.create(owner, "shop", `{"version": 1}`)
	people := []account.Actor{viewer, connector, {Kind: account.Token, Org: owner.Org, Scopes: account.Pull}, {Org: owner.Org}}
	for scope, list := range s.operations("shop") {
		for name, do := range list {
			for _, a := range people {
				err := do(a)
				if a.May(scope) && err != nil || !a.May(scope) && !errors.Is(err, account.ErrForbidden) {
					t.Errorf("%s by %q with %q: %v", name, a.Name, a.Scopes, err)
				}
			}
			if err := do(another); !errors.Is(err, account.ErrNotFound) {
				t.Errorf("%s by another organization: %v", name, err)
			}
		}
	}
	for scope, list := range s.operations("nothing") {
		for name, do := range list {
			if err := do(owner); !errors.Is(err, account.ErrNotFound) {
				t.Errorf("%s of an unknown site, which needs %s: %v", name, scope, err)
			}
		}
	}
	for name, do := range s.operations("no name\x00")[account.Read] {
		if err := do(owner); !errors.Is(err, account.ErrNotFound) {
			t.Errorf("%s of an invalid name: %v", name, err)
		}
	}
	for _, a := range []account.Actor{viewer, connector, {}} {
		if _, err := s.Create(t.Context(), a, "other", []byte(open)); !errors.Is(err, account.ErrForbidden) {
			t.Errorf("%q creates: %v", a.Name, err)
		}
	}
	if _, err := s.List(t.Context(), connector); !errors.Is(err, account.ErrForbidden) {
		t.Errorf("a connector lists: %v", err)
	}
	if _, err := s.Key(t.Context(), connector); !errors.Is(err, account.ErrForbidden) {
		t.Errorf("a connector asks for the key: %v", err)
	}
	if got, err := s.Site(t.Context(), owner, "shop"); err != nil || got.Version != made.Version {
		t.Errorf("the site was changed: %+v, %v", got, err)
	}
	theirs := s.create(another, "shop", open)
	if list, err := s.List(t.Context(), viewer); err != nil || len(list) != 1 || cmp.Diff(list[0].Changed, made.Changed) != "" || list[0].Rules != nil {
		t.Errorf("list %+v, %v", list, err)
	}
	if got, err := s.Site(t.Context(), another, "shop"); err != nil || string(got.Rules) != string(theirs.Rules) {
		t.Errorf("theirs %+v, %v", got, err)
	}
	want(t, "their activity", s.verbs(another, "shop"), "site.create done")
}

// TestBounds checks the limits on sites, and on versions of a site.
func TestBounds(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for i := range site.MaxSites {
		s.create(owner, fmt.Sprint("shop-", i), open)
	}
	if _, err := s.Create(t.Context(), owner, "more", []byte(open)); !account.IsLimit(err) {
		t.Errorf("one site too many: %v", err)
	}
	if _, err := s.Create(t.Context(), owner, "shop-1", []byte(open)); !errors.Is(err, account.ErrExists) {
		t.Errorf("an existing site: %v", err)
	}
	s.create(another, "more", open)
	if err := s.Delete(t.Context(), owner, "shop-0"); err != nil {
		t.Fatal(err)
	}
	s.create(owner, "more", open)
	for i := range site.MaxVersions {
		if _, err := s.Update(t.Context(), owner, "more", 0, fmt.Appendf(nil, `{"version": 1, "hosts": ["h%d.example.com"]}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.History(t.Context(), owner, "more")
	if err != nil || len(list) != site.MaxVersions || list[0].Number != site.MaxVersions+1 || list[len(list)-1].Number != 2 {
		t.Errorf("%d versions, %v", len(list), err)
	}
}
