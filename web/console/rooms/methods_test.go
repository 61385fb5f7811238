package rooms_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/internal/issuertest"
	"github.com/proofline/proofline/room"
)

// methodForm is a form whose methods are rows: the cells of each are name, kind, issuer, key, limit and bits.
func methodForm(rows [][6]string, more ...string) []string {
	form := someForm(more...)
	for i, row := range rows {
		for j, member := range []string{"name", "kind", "issuer", "key", "limit", "bits"} {
			form = append(form, "methods["+string(rune('0'+i))+"]."+member, row[j])
		}
	}
	return form
}

// escaped writes a field in a URL.
var escaped = strings.NewReplacer("[", "%5b", "]", "%5d")

// TestMethodRows enters methods in rows, and publishes them.
func TestMethodRows(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	own := &ownIssuer{key: issuertest.Signed("presale", 0).Method.Key}
	s.Control.Issuer, s.Control.Rooms.Issuer = own, own
	other := issuertest.Signed("club", 1).Method.Key
	pasted := strings.ToUpper(other[:32]) + " \t" + other[32:] + " "
	rows := [][6]string{{"Fan Club", "signed", "", pasted, "5,000", ""}, {"codes", "signed", "own", "", "", "20"}, {"phone", "signed", "own", "", "12", "x"}}
	path := draftOf(s, methodForm(rows, "lanes", "general 1 fan-club")...)
	s.Get(consoletest.Owner, path).Want(http.StatusOK).Lacks("cannot be published", "<textarea id=\"f-methods\"").
		Has(`name="methods[0].name" type="text" value="fan-club"`, `name="methods[0].key" type="text" value="`+other+`"`, `name="methods[0].limit" type="text" value="5000"`,
			`name="methods[2].limit" type="text" value="12"`, "Methods: fan-club, codes, phone · Lanes: general 1 fan-club")
	s.Post(consoletest.Owner, path, "do", "publish-saved", "version", "1", "confirmed", "1").Want(http.StatusSeeOther)
	r, err := s.Control.Room(t.Context(), consoletest.Actor(consoletest.Owner), "sale")
	if err != nil {
		t.Fatal(err)
	}
	methods := r.Policy().Methods
	if len(methods) != 3 || methods[0] != (credential.Method{Name: "fan-club", Kind: credential.Signed, Key: other, Limit: 5000}) || methods[1].Key != own.key ||
		methods[2] != (credential.Method{Name: "phone", Kind: credential.Signed, Key: own.key, Limit: 12}) {
		t.Errorf("published %+v", methods)
	}
	s.Get(consoletest.Owner, "/console/rooms/new?preset=presale-codes").Want(http.StatusOK).
		Has(`<option value="` + other + `">fan-club, as in sale (` + other[:8] + "…)") // its key can be chosen for the next room
	s.Get(consoletest.Stranger, "/console/rooms/new?preset=presale-codes").Want(http.StatusOK).Lacks(other)
	s.Post(consoletest.Owner, "/console/rooms/new", methodForm([][6]string{{"club", "signed", other, "", "", ""}}, "do", "add-method")...).Want(http.StatusOK).
		Has(`<option value="` + other + `" selected>`)
}

// TestMethodRowsKept adds and removes rows, and goes to the text and back: nothing that was typed is lost, also if it is
// wrong.
func TestMethodRowsKept(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	s.Create(consoletest.Owner, room.Config{Slug: "other"})
	post := func(form []string) consoletest.Answer {
		return s.Post(consoletest.Owner, "/console/rooms/new", form...)
	}
	wrong := [][6]string{{"club", "signed", "", "no key", "many", ""}, {"", "blind", "", "", "", ""}, {"work", "work", "", "", "", "99"}}
	page := post(methodForm(wrong, "do", "publish", "confirmed", "1")).Want(http.StatusBadRequest)
	for _, field := range []string{"methods[0].key", "methods[0].limit", "methods[2].bits"} {
		page.Has(`href="#f-`+escaped.Replace(field)+`"`, `id="f-`+field+`"`, `id="e-`+field+`"`)
	}
	page.Has(`value="nokey"`, `value="many"`, `value="99"`, `<details class="card section" id="door" data-section open>`)
	post(methodForm(wrong, "do", "add-method")).Want(http.StatusOK).Has(`name="methods[3].name"`, `value="nokey"`).Lacks(`name="methods[4].name"`)
	post(methodForm(wrong, "do", "remove-method:0")).Want(http.StatusOK).Has(`value="99"`).Lacks(`value="nokey"`, `name="methods[2].name"`)
	post(methodForm(wrong, "do", "remove-method:9")).Want(http.StatusOK).Has(`name="methods[2].name"`)
	post(methodForm(wrong, "do", "remove-method:x")).Want(http.StatusBadRequest)
	text := post(methodForm(wrong, "do", "methods-as-text")).Want(http.StatusOK).Lacks(`name="methods[0].name"`)
	text.Has(">club signed nokey many\n- blind\nwork work 99</textarea>")
	const line = "club signed nokey many\n- blind\nwork work 99"
	post(someForm("methods", line, "do", "methods-in-rows")).Want(http.StatusOK).Has(`value="nokey"`, `value="99"`, `name="methods[2].bits"`)
	for _, odd := range []string{"club signed key 5 more", "club strange 1", "club"} { // rows cannot say it
		post(someForm("methods", odd, "do", "methods-in-rows")).Want(http.StatusOK).Has(">" + odd + "</textarea>").Lacks(`name="methods[0].name"`)
	}
	post(someForm("methods", "club signed nokey", "do", "publish", "confirmed", "1")).Want(http.StatusBadRequest).Has(`id="e-methods"`, `href="#f-methods"`)
}

// TestSections folds what a preset does not need, says in a line what is set there, and opens what has a problem.
func TestSections(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	isOpen := func(a consoletest.Answer, id string) bool {
		return strings.Contains(a.Body, `<details class="card section" id="`+id+`" data-section open>`)
	}
	sections := []string{"windows", "outflow", "door", "proof", "shop", "trial"}
	for preset, open := range map[string]string{"minutes": "windows", "safety-net": "outflow", "open-with-work": "door"} {
		page := s.Get(consoletest.Owner, "/console/rooms/new?preset="+preset).Want(http.StatusOK)
		for _, id := range sections {
			if isOpen(page, id) != (id == open) {
				t.Errorf("%s: %s is open: %t", preset, id, isOpen(page, id))
			}
		}
	}
	path := draftOf(s, someForm("signed_return", "1")...)
	s.Get(consoletest.Owner, path).Want(http.StatusOK).Lacks("data-section open").
		Has("Opens: 1 May 2130, 11:30 UTC · Starts: 1 May 2130, 12:00 UTC · Closes: 1 May 2130, 14:00 UTC · Windows: 30 min, then 1 min",
			"People per minute: 1200 · Time to go in: 5 min · Time in the shop: 15 min", ">Nothing is set.<", "Visitors: ",
			"Addresses of the shop: https://shop.example.com/tickets, https://shop.example.com/more · Only send people back")
	for field, id := range map[string]string{"opens": "windows", "windows[1].length": "windows", "claim": "outflow", "lanes": "door", "margin": "proof", "max_waiting": "shop"} {
		page := s.Post(consoletest.Owner, path, someForm(field, "nonsense", "version", "1", "do", "publish", "confirmed", "1")...).Want(http.StatusBadRequest).
			Has("one field below needs a change", `<a href="#f-`+escaped.Replace(field)+`">`, `id="f-`+field+`"`)
		for _, other := range sections {
			if isOpen(page, other) != (other == id) {
				t.Errorf("%s: %s is open: %t", field, other, isOpen(page, other))
			}
		}
		path = draftOf(s, someForm()...)
	}
	if page := s.Post(consoletest.Owner, path+"/simulate", someForm("version", "1", "sim_visitors", "x")...).Want(http.StatusBadRequest); !isOpen(page, "trial") {
		t.Error("a problem of the simulation is folded")
	}
}

// TestTitleFirst publishes a room without a title: the problem is the title's. Without letters in the title, it is the
// address's.
func TestTitleFirst(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	for title, field := range map[string]string{"": "title", "演唱会": "slug"} {
		s.Post(consoletest.Owner, "/console/rooms/new", someForm("title", title, "slug", "", "do", "publish", "confirmed", "1")...).Want(http.StatusBadRequest).
			Has("one field below needs a change", `<a href="#f-`+field+`">`, `id="e-`+field+`"`)
		s.Get(consoletest.Owner, draftOf(s, someForm("title", title, "slug", "")...)).Want(http.StatusOK).Has(`id="e-` + field + `"`)
	}
}
