package live_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
)

// TestRehearsal starts a rehearsal, watches it, and stops it.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	opens := time.Now().Add(time.Hour)
	r := s.Create(consoletest.Operator, room.Config{Slug: "sale", Title: "Sale", Opens: &opens, Outflow: room.Outflow{PerMinute: 9}})
	const path = "/console/rooms/sale/rehearsal"
	s.Get(consoletest.Operator, path).Want(http.StatusOK).Has("Start the rehearsal", "No rehearsal has run", "work has 12 bits at most", `name="per_minute" type="text" value="40"`, "200 visitors would take 23 minutes")
	s.Get(consoletest.Viewer, path).Want(http.StatusForbidden)
	for field, value := range map[string]string{"visitors": "5", "before": "soon", "window": "-1", "per_minute": "0"} {
		s.Post(consoletest.Operator, path, field, value).Want(http.StatusBadRequest).Has(`id="e-`+field+`"`, `value="`+value+`"`)
	}
	s.Post(consoletest.Operator, path, "script", "many").Want(http.StatusBadRequest).Has(`id="e-script"`)
	s.Post(consoletest.Viewer, path, "visitors", "10").Want(http.StatusForbidden)
	s.Post(consoletest.Stranger, path, "visitors", "10").Want(http.StatusNotFound)
	s.Post(consoletest.Operator, path, "visitors", "10", "before", "1", "window", "1", "script", "small", "per_minute", "600").RedirectsTo(path + "?done=rehearsal-started")
	s.Get(consoletest.Operator, path).Want(http.StatusOK).Has("running", "Rehearsal: Sale", "It asks for 100 tickets from one machine.").Lacks("Start the rehearsal")
	s.Post(consoletest.Operator, path, "visitors", "10").Want(http.StatusBadRequest).Has("already has a running rehearsal")
	running := s.Control.Rehearsals.List(r.Owner.Org)[0]
	if running.Of == nil || *running.Of != pgroom.RoomID("sale") || !strings.HasPrefix(running.Slug, "sale-rehearsal-") {
		t.Errorf("rehearsal %+v", running)
	}
	s.Get(consoletest.Operator, "/console/rooms/"+running.Slug+"/rehearsal").Want(http.StatusOK).Has("running")
	s.Post(consoletest.Stranger, path+"/stop", "rehearsal", running.Slug).Want(http.StatusNotFound)
	s.Post(consoletest.Operator, path+"/stop", "rehearsal", running.Slug).RedirectsTo(path + "?done=rehearsal-stopped")
	deadline := time.Now().Add(time.Minute)
	for !s.Control.Rehearsals.List(r.Owner.Org)[0].Over {
		if time.Now().After(deadline) {
			t.Fatal("the rehearsal still runs")
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.Get(consoletest.Operator, path).Want(http.StatusOK).Has("over", "Start the rehearsal")
	copied, err := s.Control.Rooms.Get(t.Context(), running.Slug)
	if copied != nil && copied.Snapshot().Outflow.PerMinute != 600 {
		t.Errorf("the copy calls %d a minute", copied.Snapshot().Outflow.PerMinute)
	}
	if err != nil || !copied.Snapshot().Ended || r.Snapshot().Size != 1 {
		t.Errorf("the copy ended: %v; the room has %d entries", err, r.Snapshot().Size)
	}
	s.Get(consoletest.Viewer, "/console/activity").Want(http.StatusOK).Has("started a rehearsal", "stopped a rehearsal", "visitors: 10", "script: 100")
}

// TestRehearseDraft rehearses a room before anyone else can see it.
func TestRehearseDraft(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	actor := consoletest.Actor(consoletest.Operator)
	save := func(config string) string {
		draft, err := s.Control.Drafts.Save(t.Context(), actor, uuid.Nil, 0, "", json.RawMessage(config))
		if err != nil {
			t.Fatal(err)
		}
		return "/console/drafts/" + draft.ID.String() + "/rehearsal"
	}
	broken := save(`{"slug":"Not a slug!"}`)
	s.Get(consoletest.Operator, broken).Want(http.StatusOK).Has("Start the rehearsal")
	s.Post(consoletest.Operator, broken, "visitors", "10").Want(http.StatusBadRequest).Has("must be 1 to 63 of a-z")
	path := save(`{"slug":"planned","title":"Planned"}`)
	s.Get(consoletest.Viewer, path).Want(http.StatusForbidden)
	s.Get(consoletest.Stranger, path).Want(http.StatusNotFound)
	s.Post(consoletest.Stranger, path, "visitors", "10").Want(http.StatusNotFound)
	s.Post(consoletest.Operator, path, "visitors", "10").RedirectsTo(path + "?done=rehearsal-started")
	running := s.Control.Rehearsals.List(actor.Org)[0]
	s.Get(consoletest.Operator, path).Want(http.StatusOK).Has("running", "Rehearsal: Planned")
	s.Post(consoletest.Operator, path+"/stop", "rehearsal", running.Slug).RedirectsTo(path + "?done=rehearsal-stopped")
}
