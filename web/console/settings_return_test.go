package console

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/site/pgsite"
	"github.com/proofline/proofline/room"
)

const (
	returnBox = `<input type="checkbox" name="signed_return" value="1"`
	noSigner  = "No connector of this room was heard of"
)

// TestSettingsSignedReturn turns signed ways back on and off, and says when
// nobody could sign.
func TestSettingsSignedReturn(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	r := s.create(owner, room.Config{Slug: "sale"})
	s.create(owner, room.Config{Slug: "other"})
	before := r.Snapshot().Size
	save := func(pairs ...string) {
		t.Helper()
		s.post(operator, settingsPath, s.get(operator, settingsPath).want(http.StatusOK).settingsOf(append(pairs, "confirmed", "1")...)...).leadsTo(settingsPath + "?done=settings-saved")
	}
	stale := s.get(operator, settingsPath).want(http.StatusOK).has(returnBox+">", `<p class="notice">`+noSigner).settingsOf("signed_return", "1", "max_waiting", "7")
	save("signed_return", "1")
	s.get(operator, settingsPath).want(http.StatusOK).has(returnBox+" checked>", `<p class="notice warn">`+noSigner)
	if !r.Config().SignedReturn || r.Snapshot().Size != before {
		t.Errorf("%+v, %d entries", r.Config().Settings, r.Snapshot().Size-before)
	}
	s.post(operator, settingsPath, stale...).want(http.StatusConflict).has("Most people in line").lacks("Send people back only") // both want it
	save("max_waiting", "8")
	if !r.Config().SignedReturn {
		t.Error("another change turns it off")
	}
	save("signed_return", "-")
	if r.Config().SignedReturn {
		t.Error("it is not turned off")
	}
	s.post(operator, settingsPath, stale...).want(http.StatusConflict).has("Send people back only", "yes", "no")

	heard := func(node, site string) {
		t.Helper()
		err := s.Sites.Store.Seen(t.Context(), account.MainOrg, pgsite.Connector{Node: node, Site: site, Kind: "proxy", Version: "1", Counts: map[string]uint64{}}, time.Second, 10)
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Sites.Create(t.Context(), identities()[operator].Actor, "elsewhere", []byte(`{"version":1,"rooms":{"other":{"url":"`+strings.Replace(r.URL, "/r/sale", "/r/other", 1)+`"}},"rules":[]}`)); err != nil {
		t.Fatal(err)
	}
	heard("AAAAAAAAAAAAAAAAAAAAAA", "elsewhere")
	s.get(operator, settingsPath).want(http.StatusOK).has(noSigner)
	heard("BBBBBBBBBBBBBBBBBBBBBA", "")
	s.get(operator, settingsPath).want(http.StatusOK).lacks(noSigner)
}

// TestDraftSignedReturn keeps it in a draft, and publishes it.
func TestDraftSignedReturn(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	path := s.draftOf(someForm("signed_return", "1")...)
	s.get(owner, path).want(http.StatusOK).has(returnBox + " checked>")
	s.post(owner, path, someForm("version", "1")...).want(http.StatusSeeOther)
	s.get(owner, path).want(http.StatusOK).has(returnBox + ">")
}
