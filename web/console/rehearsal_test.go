package console

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
)

// TestRehearsal begins a rehearsal, watches it, and stops it.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	opens := time.Now().Add(time.Hour)
	r := s.create(operator, room.Config{Slug: "sale", Title: "Sale", Opens: &opens})
	const path = "/console/rooms/sale/rehearsal"
	s.get(operator, path).want(http.StatusOK).has("Begin the rehearsal", "Nothing was rehearsed")
	s.get(viewer, path).want(http.StatusForbidden)
	for field, value := range map[string]string{"visitors": "5", "before": "soon", "window": "-1"} {
		s.post(operator, path, field, value).want(http.StatusBadRequest).has(`id="e-`+field+`"`, `value="`+value+`"`)
	}
	s.post(viewer, path, "visitors", "10").want(http.StatusForbidden)
	s.post(stranger, path, "visitors", "10").want(http.StatusNotFound)
	s.post(operator, path, "visitors", "10", "before", "1", "window", "1").leadsTo(path + "?done=rehearsal-started")
	s.get(operator, path).want(http.StatusOK).has("under way", "Rehearsal: Sale").lacks("Begin the rehearsal")
	s.post(operator, path, "visitors", "10").want(http.StatusBadRequest).has("already has a running rehearsal")
	running := s.control.Rehearsals.List(r.Owner.Org)[0]
	if running.Of == nil || *running.Of != pgroom.RoomID("sale") || !strings.HasPrefix(running.Slug, "sale-rehearsal-") {
		t.Errorf("rehearsal %+v", running)
	}
	s.get(operator, "/console/rooms/"+running.Slug+"/rehearsal").want(http.StatusOK).has("under way")
	s.post(stranger, path+"/stop", "rehearsal", running.Slug).want(http.StatusNotFound)
	s.post(operator, path+"/stop", "rehearsal", running.Slug).leadsTo(path + "?done=rehearsal-stopped")
	deadline := time.Now().Add(time.Minute)
	for !s.control.Rehearsals.List(r.Owner.Org)[0].Over {
		if time.Now().After(deadline) {
			t.Fatal("the rehearsal goes on")
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.get(operator, path).want(http.StatusOK).has("over", "Begin the rehearsal")
	copied, err := s.control.Rooms.Get(t.Context(), running.Slug)
	if err != nil || !copied.Snapshot().Ended || r.Snapshot().Size != 1 {
		t.Errorf("the copy ended: %v; the room has %d entries", err, r.Snapshot().Size)
	}
	s.get(viewer, "/console/acts").want(http.StatusOK).has("began a rehearsal", "stopped a rehearsal", "visitors: 10")
}

// TestRehearseDraft rehearses a room before anybody else can see it.
func TestRehearseDraft(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	actor := identities()[operator].Actor
	save := func(config string) string {
		draft, err := s.control.SaveDraft(t.Context(), actor, uuid.Nil, 0, "", json.RawMessage(config))
		if err != nil {
			t.Fatal(err)
		}
		return "/console/drafts/" + draft.ID.String() + "/rehearsal"
	}
	broken := save(`{"slug":"Not a slug!"}`)
	s.get(operator, broken).want(http.StatusOK).has("Begin the rehearsal")
	s.post(operator, broken, "visitors", "10").want(http.StatusBadRequest).has("must be 1 to 63 of a-z")
	path := save(`{"slug":"planned","title":"Planned"}`)
	s.get(viewer, path).want(http.StatusForbidden)
	s.get(stranger, path).want(http.StatusNotFound)
	s.post(stranger, path, "visitors", "10").want(http.StatusNotFound)
	s.post(operator, path, "visitors", "10").leadsTo(path + "?done=rehearsal-started")
	running := s.control.Rehearsals.List(actor.Org)[0]
	s.get(operator, path).want(http.StatusOK).has("under way", "Rehearsal: Planned")
	s.post(operator, path+"/stop", "rehearsal", running.Slug).leadsTo(path + "?done=rehearsal-stopped")
}
