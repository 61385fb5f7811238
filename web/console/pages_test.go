package console_test

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/console/rehearse"
	sites "github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/web/console"
)

// TestReadyPage shows what was checked to those who can do something about it.
func TestReadyPage(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	s.Get(consoletest.Operator, "/console/ready").Want(http.StatusOK).Has("Ready for the sale?", "Nobody gets alerts.", "look at it", "database settings")
	s.Get(consoletest.Stranger, "/console/ready").Want(http.StatusOK).Has("Nobody gets alerts.").Lacks("database settings")
	s.Get(consoletest.Viewer, "/console/ready").Want(http.StatusForbidden)
	s.Get(consoletest.Operator, "/console/guide").Has(`href="/console/ready"`)
}

// TestPagesAreLookedAt checks that the browser tests know every page: each is tested, or there is a reason
// why not.
func TestPagesAreLookedAt(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../e2e/stage/console-pages.json")
	if err != nil {
		t.Fatal(err)
	}
	var known struct{ Pages, Others map[string]string }
	if err := json.Unmarshal(text, &known); err != nil {
		t.Fatal(err)
	}
	everything := console.Options{
		Activity: &activity.Log{},
		Accounts: &account.Accounts{}, Live: &live.Live{}, Webhooks: &webhook.Service{}, Sites: &sites.Sites{},
		Control: &control.Rooms{Options: control.Options{Rehearsals: &rehearse.Rehearsals{}}},
	}
	c, err := console.New(everything) // no method of them is called
	if err != nil {
		t.Fatal(err)
	}
	routes := map[string]bool{}
	for _, r := range c.Routes() {
		if r.Method == http.MethodGet {
			routes[r.Path] = true
		}
	}
	for path := range routes {
		if known.Pages[path] == "" && known.Others[path] == "" {
			t.Errorf("web/e2e/stage/console-pages.json does not know %s", path)
		}
	}
	for _, list := range []map[string]string{known.Pages, known.Others} {
		for path := range list {
			if !routes[path] {
				t.Errorf("web/e2e/stage/console-pages.json knows %s, which is no route", path)
			}
		}
	}
}
