package console

import (
	"net/http"
	"testing"

	"github.com/proofline/proofline/room"
)

// TestQueueIt sets up a room for a site of queue-it's, changes that without the
// key, and ends it. No page ever has the key.
func TestQueueIt(t *testing.T) {
	t.Parallel()
	const path, key = "/console/rooms/sale/queue-it", "4e1db821-a825-49da-acd0-5d376f2068db"
	s := newConsole(t)
	r := s.create(owner, room.Config{Slug: "sale"})
	s.get(operator, "/console/rooms/sale/settings").want(http.StatusOK).has(path)
	s.get(operator, path).want(http.StatusOK).has("<code>example.com</code>", "<code>sale</code>").lacks(path + "/clear")
	s.post(operator, path, "customer_id", "not_one", "secret_key", "too-short").want(http.StatusBadRequest).
		has(`value="not_one"`, "must be 1 to 63", "must be 32 to 200").lacks("too-short")
	if _, ok := r.QueueIt(); ok {
		t.Error("what is wrong is set")
	}
	if to := s.post(operator, path, "customer_id", " arena ", "secret_key", key).want(http.StatusSeeOther).header.Get("Location"); to != path+"?done=queue-it-saved" {
		t.Errorf("to %q", to)
	}
	s.get(operator, path).want(http.StatusOK).has(`value="arena"`, path+"/clear").lacks(key, "checked")
	s.post(operator, path, "customer_id", "arena", "extend", "1", "with_pass", "1", "secret_key", "").want(http.StatusSeeOther)
	if q, ok := r.QueueIt(); !ok || q != (room.QueueIt{CustomerID: "arena", Extend: true, WithPass: true}) {
		t.Errorf("%+v, %t", q, ok)
	}
	s.get(operator, path).has("checked").lacks(key)
	s.post(viewer, path, "customer_id", "other").want(http.StatusForbidden)
	s.get(viewer, path).want(http.StatusForbidden)
	s.get(operator, "/console/acts?object=sale").want(http.StatusOK).has("how the room speaks to queue-it").lacks(key)
	s.post(operator, path+"/clear").want(http.StatusOK).has("data-question")
	if _, ok := r.QueueIt(); !ok {
		t.Error("ended without a question")
	}
	s.post(operator, path+"/clear", "confirmed", "1").want(http.StatusSeeOther)
	if _, ok := r.QueueIt(); ok {
		t.Error("still set")
	}
	if size := r.Snapshot().Size; size != 1 {
		t.Errorf("%d entries: it is no matter of the transcript", size)
	}
}
