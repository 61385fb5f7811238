package people_test

import (
	"errors"
	"regexp"
	"slices"
	"testing"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/web/console/people"
)

// TestVerifiedHosts offers a host once its organization has proven its ownership, and only to this
// organization.
func TestVerifiedHosts(t *testing.T) {
	t.Parallel()
	dns := zone{}
	w := consoletest.NewTown(t, func(o *account.Options) { o.Resolver = dns })
	v := w.Setup()
	hosts := people.VerifiedHosts(w.Accounts.Hosts)
	by := account.Actor{Kind: account.Person, Org: account.MainOrg, Scopes: account.Operate}
	list := func() []string {
		t.Helper()
		found, err := hosts(t.Context(), by)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	v.Post("/console/organization/hosts", "host", "queue.halls.example").RedirectsTo("/console/organization?done=host-added")
	if got := list(); len(got) != 0 {
		t.Errorf("claimed alone: %v", got)
	}
	token := regexp.MustCompile(`proofline-[a-z2-7]{32}`).FindString(v.Get("/console/organization").Body)
	dns["_proofline.queue.halls.example."] = []string{token}
	v.Post("/console/organization/hosts/verify", "claimed", "queue.halls.example").RedirectsTo("/console/organization?done=host-verified")
	if got := list(); !slices.Equal(got, []string{"queue.halls.example"}) {
		t.Errorf("verified: %v", got)
	}
	by.Org = consoletest.OtherOrg
	if got := list(); len(got) != 0 {
		t.Errorf("of another organization: %v", got)
	}
	by.Scopes = 0
	if _, err := hosts(t.Context(), by); !errors.Is(err, account.ErrForbidden) {
		t.Errorf("without an organization: %v", err)
	}
}
