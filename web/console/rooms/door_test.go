package rooms_test

import (
	"html"
	"net/http"
	"strings"
	"testing"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/internal/issuertest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/rooms"
)

// TestCards: each card has the figures of the simulator.
func TestCards(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	page := html.UnescapeString(s.Get(consoletest.Operator, "/console/rooms/new").Want(http.StatusOK).Body)
	if n := len(rooms.DoorPresets()); n != 4 {
		t.Fatalf("presets %v", rooms.DoorPresets())
	}
	for _, name := range append(rooms.PresetNames(), rooms.DoorPresets()...) {
		before, _, found := strings.Cut(page, `?preset=`+name+`"`)
		if !found {
			t.Fatalf("%s has no card", name)
		}
		card := before[strings.LastIndex(before, "<li"):]
		for _, words := range rooms.PresetWords(name) {
			if words == "" || !strings.Contains(card, words) {
				t.Errorf("%s: no %q in %s", name, words, card)
			}
		}
	}
	for _, price := range []string{"One membership.", "One account.", "One code. 9,525 of the 10,000 people were given none or sold theirs, and cannot join.",
		" on an old phone."} {
		if !strings.Contains(page, "<dd>"+price) && !strings.Contains(page, price+"</dd>") {
			t.Errorf("no price %q", price)
		}
	}
}

// TestDoorPresets: with an issuer and a beacon each preset is a room that can be published. Without them the page says
// what is missing, on the card and in the editor.
func TestDoorPresets(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	for _, name := range rooms.DoorPresets() {
		says := "This server runs no issuer"
		if name == "open-with-work" {
			says = "This server has no beacon"
		}
		s.Get(consoletest.Owner, "/console/rooms/new").Has(says)
		s.Get(consoletest.Owner, "/console/rooms/new?preset="+name).Want(http.StatusOK).Has(says)
	}
	own := &ownIssuer{key: issuertest.Signed("presale", 0).Method.Key}
	s.Control.Issuer, s.Control.Rooms.Issuer = own, own
	s.Get(consoletest.Owner, "/console/rooms/new").Lacks("This server runs no issuer")
	for name, method := range map[string][2]string{"members-only": {"members", "0"}, "one-place-per-account": {"account", "0"}, "presale-codes": {"presale", "500"}} {
		s.Get(consoletest.Owner, "/console/rooms/new?preset="+name).Lacks("This server runs no issuer").
			Has("From here to the first visitor", `name="methods[0].name" type="text" value="`+method[0]+`"`, `<option value="own" selected>`, `name="methods[0].limit" type="text" value="`+method[1]+`"`)
		config, err := rooms.PresetConfig(name, name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := room.ParseConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		if problems := s.Control.Rooms.Problems(c); len(problems) > 0 || len(c.Lanes) != 1 || len(c.Lanes[0].Needs) != 1 {
			t.Errorf("%s: %v, lanes %+v", name, problems, c.Lanes)
		}
	}
	own.mails = true
	s.Get(consoletest.Owner, "/console/rooms/new").Has("each email address gets one place")
	s.Get(consoletest.Owner, "/console/rooms/new?preset=one-place-per-account").Has(`value="account"`, `<option value="own-mail" selected>`, "types an email address").Lacks("upload a list")
	s.Get(consoletest.Owner, "/console/rooms/new?preset=members-only").Has(`value="members"`, `<option value="own" selected>`)
	own.signsIn = true
	s.Get(consoletest.Owner, "/console/rooms/new").Has("each account gets one place").Lacks("each email address gets one place")
	s.Get(consoletest.Owner, "/console/rooms/new?preset=one-place-per-account").
		Has(`<option value="own-oidc" selected>`, `<option value="own-mail">`, "signs in at this server’s provider", "choose a mailed code")
	own.mails = false
	s.Get(consoletest.Owner, "/console/rooms/new?preset=one-place-per-account").Has(`<option value="own-oidc" selected>`).Lacks(`value="own-mail"`, "mailed code under")
	config, err := rooms.PresetConfig("open-with-work", "work")
	if err != nil {
		t.Fatal(err)
	}
	c, err := room.ParseConfig(config)
	if err != nil || len(c.Methods) != 1 || c.Methods[0] != (credential.Method{Name: "work", Kind: credential.Work, Bits: 20}) {
		t.Errorf("%+v, %v", c.Methods, err)
	}
}

// TestPublishLeadsToCodes publishes a presale: the page that follows makes as many codes as the room takes, on a sheet
// that shows them with the room's address.
func TestPublishLeadsToCodes(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	own := &ownIssuer{key: issuertest.Signed("presale", 0).Method.Key}
	s.Control.Issuer, s.Control.Rooms.Issuer = own, own
	draft := draftOf(s, "version", "0", "title", "Presale", "slug", "early", "windows[0].length", "1 min",
		"methods", "presale signed own 3", "lanes", "general 1 presale", "beacon", "none")
	s.Post(consoletest.Owner, draft, "do", "publish-saved", "version", "1", "confirmed", "1").
		RedirectsTo("/console/rooms/early/codes?done=room-published")
	const path = "/console/rooms/early/codes"
	s.Get(consoletest.Owner, path).Want(http.StatusOK).Has(`value="3"`, `href="/console/rooms/early/members"`)
	a := s.Post(consoletest.Owner, path, "method", "presale", "count", "3", "do", "sheet").Want(http.StatusOK)
	a.Has("3 codes for Presale", "<b>early-presale-1</b>", "<b>early-presale-3</b>", "/r/early</small>", "only copy")
	if strings.Count(a.Body, "<b>early-presale-") != 3 || a.Header.Get("Cache-Control") == "" {
		t.Errorf("%v\n%s", a.Header, a.Body)
	}
}
