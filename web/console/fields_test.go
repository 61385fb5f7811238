package console

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"github.com/proofline/proofline/room/setting"
)

func TestFieldName(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]string{
		"slug": "Address, last part", "windows[2].length": "Windows, row 3", "targets[0]": "Addresses of the shop, row 1", "brand.dark.logo": "Brand",
		"outflow.per_minute": "People per minute", "windows[x]": "windows[x]", "color": "color", "": "",
	} {
		if got := fieldName(field); got != want {
			t.Errorf("%q is %q, want %q", field, got, want)
		}
	}
	for _, s := range setting.All() {
		if fieldName(s.Name) == s.Name {
			t.Errorf("the console has no name for %s", s.Name)
		}
	}
}

// TestProblemsElsewhere names the fields of a draft as its form does, where a
// page without them says what is wrong.
func TestProblemsElsewhere(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	d, err := s.control.SaveDraft(t.Context(), identities()[operator].Actor, uuid.Nil, 0, "", []byte(`{"title":"Later","claim":"1ms","windows":[{"length":"1ms"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	s.post(operator, "/console/drafts/"+d.ID.String()+"/rehearsal", "visitors", "10", "before", "10", "window", "1").want(http.StatusBadRequest).
		has("<strong>Time to go in</strong>").lacks("<code>claim</code>", "<code>windows")
}
