package rooms_test

import (
	"net/http"
	"testing"

	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/queueit"
)

// TestQueueIt configures a room for a Queue-it site, changes that without the key, and ends it. No page ever
// has the key.
func TestQueueIt(t *testing.T) {
	t.Parallel()
	const path, key = "/console/rooms/sale/queue-it", "4e1db821-a825-49da-acd0-5d376f2068db"
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale"})
	s.Get(consoletest.Operator, "/console/rooms/sale/settings").Want(http.StatusOK).Has(path)
	s.Get(consoletest.Operator, path).Want(http.StatusOK).Has("<code>example.com</code>", "<code>sale</code>").Lacks(path + "/clear")
	s.Post(consoletest.Operator, path, "customer_id", "not_one", "secret_key", "too-short").Want(http.StatusBadRequest).
		Has(`value="not_one"`, "must be 1 to 63", "must be 32 to 200").Lacks("too-short")
	if _, ok := r.QueueIt.Config(); ok {
		t.Error("an invalid value is stored")
	}
	if to := s.Post(consoletest.Operator, path, "customer_id", " arena ", "secret_key", key).Want(http.StatusSeeOther).Header.Get("Location"); to != path+"?done=queue-it-saved" {
		t.Errorf("to %q", to)
	}
	s.Get(consoletest.Operator, path).Want(http.StatusOK).Has(`value="arena"`, path+"/clear").Lacks(key, "checked")
	s.Post(consoletest.Operator, path, "customer_id", "arena", "extend", "1", "with_pass", "1", "secret_key", "").Want(http.StatusSeeOther)
	if q, ok := r.QueueIt.Config(); !ok || q != (queueit.Config{CustomerID: "arena", Extend: true, WithPass: true}) {
		t.Errorf("%+v, %t", q, ok)
	}
	s.Get(consoletest.Operator, path).Has("checked").Lacks(key)
	s.Post(consoletest.Viewer, path, "customer_id", "other").Want(http.StatusForbidden)
	s.Get(consoletest.Viewer, path).Want(http.StatusForbidden)
	s.Get(consoletest.Operator, "/console/activity?object=sale").Want(http.StatusOK).Has("changed the tokens for Queue-it connectors").Lacks(key)
	s.Post(consoletest.Operator, path+"/clear").Want(http.StatusOK).Has("data-question")
	if _, ok := r.QueueIt.Config(); !ok {
		t.Error("ended without a question")
	}
	s.Post(consoletest.Operator, path+"/clear", "confirmed", "1").Want(http.StatusSeeOther)
	if _, ok := r.QueueIt.Config(); ok {
		t.Error("still set")
	}
	if size := r.Snapshot().Size; size != 1 {
		t.Errorf("%d entries: it is no matter of the transcript", size)
	}
}
