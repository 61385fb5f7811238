package rooms_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/site/pgsite"
	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/room"
)

const (
	returnBox = `<input type="checkbox" name="signed_return" value="1"`
	noSigner  = "No connector of this room has reported"
)

// TestSettingsSignedReturn turns signed return URLs on and off, and warns if no connector could sign.
func TestSettingsSignedReturn(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale"})
	s.Create(consoletest.Owner, room.Config{Slug: "other"})
	before := r.Snapshot().Size
	save := func(pairs ...string) {
		t.Helper()
		s.Post(consoletest.Operator, settingsPath, settingsOf(s.Get(consoletest.Operator, settingsPath).Want(http.StatusOK), append(pairs, "confirmed", "1")...)...).RedirectsTo(settingsPath + "?done=settings-saved")
	}
	stale := settingsOf(s.Get(consoletest.Operator, settingsPath).Want(http.StatusOK).Has(returnBox+">", `<p class="notice">`+noSigner), "signed_return", "1", "max_waiting", "7")
	save("signed_return", "1")
	s.Get(consoletest.Operator, settingsPath).Want(http.StatusOK).Has(returnBox+" checked>", `<p class="notice warn">`+noSigner)
	if !r.Config().SignedReturn || r.Snapshot().Size != before {
		t.Errorf("%+v, %d entries", r.Config().Settings, r.Snapshot().Size-before)
	}
	s.Post(consoletest.Operator, settingsPath, stale...).Want(http.StatusConflict).Has("Maximum number of people in line").Lacks("Only send people back") // both versions have it
	save("max_waiting", "8")
	if !r.Config().SignedReturn {
		t.Error("another change turns it off")
	}
	save("signed_return", "-")
	if r.Config().SignedReturn {
		t.Error("it is not turned off")
	}
	s.Post(consoletest.Operator, settingsPath, stale...).Want(http.StatusConflict).Has("Only send people back", "yes", "no")

	heard := func(node, site string) {
		t.Helper()
		err := s.Sites.Store.Seen(t.Context(), account.MainOrg, pgsite.Connector{Node: node, Site: site, Kind: "proxy", Version: "1", Counts: map[string]uint64{}}, time.Second, 10)
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Sites.Create(t.Context(), consoletest.Actor(consoletest.Operator), "elsewhere", []byte(`{"version":1,"rooms":{"other":{"url":"`+strings.Replace(r.URL, "/r/sale", "/r/other", 1)+`"}},"rules":[]}`)); err != nil {
		t.Fatal(err)
	}
	heard("AAAAAAAAAAAAAAAAAAAAAA", "elsewhere")
	s.Get(consoletest.Operator, settingsPath).Want(http.StatusOK).Has(noSigner)
	heard("BBBBBBBBBBBBBBBBBBBBBA", "")
	s.Get(consoletest.Operator, settingsPath).Want(http.StatusOK).Lacks(noSigner)
}

// TestDraftSignedReturn saves the setting in a draft, and publishes it.
func TestDraftSignedReturn(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	path := draftOf(s, someForm("signed_return", "1")...)
	s.Get(consoletest.Owner, path).Want(http.StatusOK).Has(returnBox + " checked>")
	s.Post(consoletest.Owner, path, someForm("version", "1")...).Want(http.StatusSeeOther)
	s.Get(consoletest.Owner, path).Want(http.StatusOK).Has(returnBox + ">")
}
