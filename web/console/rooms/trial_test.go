package rooms_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/room"
)

// saleForm is a draft with a small crowd, as sent to the simulator.
func saleForm(change ...string) []string {
	return someForm(append([]string{"sim_visitors", "600", "sim_tickets", "60", "sim_bots", "10", "sim_no_show", "5 %"}, change...)...)
}

// TestTrial simulates a sale from a saved and an unsaved draft, with the whole page and without it.
func TestTrial(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	path := draftOf(s, someForm()...)
	for _, at := range []string{path + "/simulate", "/console/drafts/new/simulate"} {
		s.Post(consoletest.Owner, at, saleForm("title", "Typed")...).Want(http.StatusOK).Has("60 tickets are sold", `class="chart"`, `value="Typed"`, `value="600"`, "<html")
		part := s.Post(consoletest.Owner, at, saleForm("part", "1")...).Want(http.StatusOK).Has("60 tickets are sold", `class="chart"`).Lacks("<html", "<form", "style=")
		if strings.Contains(part.Body, `class="error"`) {
			t.Error(part.Body)
		}
	}
	codes := saleForm("methods", "presale signed own 120", "lanes", "general 1 presale", "part", "1")
	s.Post(consoletest.Owner, path+"/simulate", codes...).Want(http.StatusOK).Has("120 codes, 5% of them sold on: bots hold", "they were given no code")
	s.Post(consoletest.Owner, path+"/simulate", saleForm("methods", "presale signed own 120", "lanes", "general 1\nearly 1 presale", "part", "1")...).
		Want(http.StatusOK).Has("120 codes, 5% of them sold on: bots hold").Lacks("they were given no code")
	for field, wrong := range map[string]string{
		"sim_visitors": "50,001", "sim_tickets": "many", "sim_bots": "91", "sim_no_show": "-1",
	} {
		s.Post(consoletest.Owner, path+"/simulate", saleForm(field, wrong)...).Want(http.StatusBadRequest).Has(`id="e-`+field+`"`, `value="`+wrong+`"`).Lacks("to be published", "being published")
		s.Post(consoletest.Owner, path+"/simulate", saleForm(field, wrong, "part", "1")...).Want(http.StatusBadRequest).Has(`class="error"`).Lacks("<html")
	}
	for field, wrong := range map[string]string{"windows[0].length": "soon", "opens": "", "starts": "2130-01-01T00:00", "outflow.per_minute": "many", "claim": "300 d"} {
		s.Post(consoletest.Owner, path+"/simulate", saleForm(field, wrong, "part", "1")...).Want(http.StatusBadRequest).Has(`class="error"`)
	}
	s.Get(consoletest.Owner, path).Want(http.StatusOK).Has(`value="Sale"`)
}

// TestTrialBusy allows fewer simulated visitors while a room has visitors in line.
func TestTrialBusy(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	later := time.Now().Add(time.Hour)
	r := s.Create(consoletest.Owner, room.Config{Slug: "busy", Starts: &later})
	s.Post(consoletest.Owner, "/console/drafts/new/simulate", saleForm("sim_visitors", "10,001", "part", "1")...).Lacks("to 10,000") // it may take too long
	s.Join(r, 1)
	s.Post(consoletest.Owner, "/console/drafts/new/simulate", saleForm("sim_visitors", "10,001", "part", "1")...).Want(http.StatusBadRequest).Has("to 10,000")
	s.Post(consoletest.Owner, "/console/drafts/new/simulate", saleForm("part", "1")...).Want(http.StatusOK)
}
