package console

import (
	"errors"
	"regexp"
	"slices"
	"testing"

	"github.com/proofline/proofline/console/account"
)

// TestVerifiedHosts offers a host once its organization has shown it to be its
// own, and to nobody else.
func TestVerifiedHosts(t *testing.T) {
	t.Parallel()
	dns := zone{}
	w := newTown(t, func(o *account.Options) { o.Resolver = dns })
	v := w.setup()
	hosts := VerifiedHosts(w.accounts)
	by := account.Actor{Kind: account.Person, Org: account.MainOrg, Scopes: account.Operate}
	list := func() []string {
		t.Helper()
		found, err := hosts(t.Context(), by)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	v.post("/console/organization/hosts", "host", "queue.halls.example").leadsTo("/console/organization?done=host-added")
	if got := list(); len(got) != 0 {
		t.Errorf("claimed alone: %v", got)
	}
	token := regexp.MustCompile(`proofline-[a-z2-7]{32}`).FindString(v.get("/console/organization").body)
	dns["_proofline.queue.halls.example."] = []string{token}
	v.post("/console/organization/hosts/verify", "claimed", "queue.halls.example").leadsTo("/console/organization?done=host-verified")
	if got := list(); !slices.Equal(got, []string{"queue.halls.example"}) {
		t.Errorf("verified: %v", got)
	}
	by.Org = otherOrg
	if got := list(); len(got) != 0 {
		t.Errorf("of another organization: %v", got)
	}
	by.Scopes = 0
	if _, err := hosts(t.Context(), by); !errors.Is(err, account.ErrForbidden) {
		t.Errorf("of nobody: %v", err)
	}
}
