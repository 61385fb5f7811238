package rooms_test

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"github.com/proofline/proofline/internal/consoletest"
)

// TestProblemsElsewhere: a page without a draft's fields names them in problems as the draft's form does.
func TestProblemsElsewhere(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	d, err := s.Control.Drafts.Save(t.Context(), consoletest.Actor(consoletest.Operator), uuid.Nil, 0, "", []byte(`{"title":"Later","claim":"1ms","windows":[{"length":"1ms"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	s.Post(consoletest.Operator, "/console/drafts/"+d.ID.String()+"/rehearsal", "visitors", "10", "before", "10", "window", "1").Want(http.StatusBadRequest).
		Has("<strong>Time to go in</strong>").Lacks("<code>claim</code>", "<code>windows")
}
