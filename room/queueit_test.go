package room

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/keys"
)

const queueItKey = "4e1db821-a825-49da-acd0-5d376f2068db" // of KnownUser's own tests

// TestQueueItToken compares tokens with those that Node's crypto makes of the
// same texts, the way test/UserInQueueServiceTest.js of KnownUser.V3.Javascript
// does.
func TestQueueItToken(t *testing.T) {
	t.Parallel()
	ticket, err := fairness.ParseTicket("ee1c7875-3ec0-84ef-91f3-25d50ce61d0a")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_900_000_000, 0)
	for name, c := range map[string]struct {
		extend bool
		left   time.Duration
		want   string
	}{
		"the time of the pass":   {false, 15 * time.Minute, "e_sale~ts_1900000300~ce_false~q_ee1c7875-3ec0-84ef-91f3-25d50ce61d0a~cv_15~rt_queue~h_@fixed"},
		"what is left is longer": {false, 14*time.Minute + time.Second, "e_sale~ts_1900000300~ce_false~q_ee1c7875-3ec0-84ef-91f3-25d50ce61d0a~cv_15~rt_queue~h_@fixed"},
		"to the next second":     {false, 15*time.Minute + 900*time.Millisecond, "e_sale~ts_1900000300~ce_false~q_ee1c7875-3ec0-84ef-91f3-25d50ce61d0a~cv_15~rt_queue~h_@fixed"},
		"a short rest":           {false, 20 * time.Second, "e_sale~ts_1900000020~ce_false~q_ee1c7875-3ec0-84ef-91f3-25d50ce61d0a~cv_1~rt_queue~h_@short"},
		"as the site says":       {true, 15 * time.Minute, "e_sale~ts_1900000300~ce_true~q_ee1c7875-3ec0-84ef-91f3-25d50ce61d0a~rt_queue~h_@extend"},
	} {
		want := strings.NewReplacer(
			"@fixed", "b25c616385c085d12fde2d5461d0af61c0fc328addf055ef0b6990705b0cae59",
			"@short", "449d961214658c5b8a0e25493d18dce0be2ebdfcdc65e0eac0e8fe773fe4b119",
			"@extend", "fe7b5c93d3545c6eab2c00de50ef0c41ea193b85b56a67fcb519d91f4b64ab29",
		).Replace(c.want)
		if got := queueItToken([]byte(queueItKey), "sale", ticket, QueueIt{Extend: c.extend}, now, now.Add(c.left)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestQueueIt sets how a room speaks to connectors of queue-it, on one node and
// for another, changes it without the key, and ends it.
func TestQueueIt(t *testing.T) {
	t.Parallel()
	url, master := pgtest.URL(t), newMaster(t)
	first, second := node(t, url, master), node(t, url, master)
	r := create(t, first, Config{Slug: "switch", Settings: Settings{Targets: []string{"https://shop.example.com/"}}})
	other, err := second.Get(t.Context(), "switch")
	if err != nil {
		t.Fatal(err)
	}
	ticket := newVisitor(r).ticket
	st := fairness.Standing{Ticket: ticket, Settled: fromTime(time.Now())}
	if token, err := r.QueueItToken(t.Context(), st); token != "" || err != nil {
		t.Fatalf("token %q without settings, %v", token, err)
	}
	if err := r.SetQueueIt(t.Context(), QueueIt{CustomerID: "arena"}, queueItKey); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other node knows", func() bool { q, ok := other.QueueIt(); return ok && q.CustomerID == "arena" })
	if err := other.SetQueueIt(t.Context(), QueueIt{CustomerID: "arena", Extend: true}, ""); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the change is known", func() bool { q, ok := r.QueueIt(); return ok && q.Extend })
	for _, r := range []*Room{r, other} {
		token, err := r.QueueItToken(t.Context(), st)
		if want := "~ce_true~q_" + ticket.String() + "~rt_queue~h_"; err != nil || !strings.HasPrefix(token, "e_switch~ts_") || !strings.Contains(token, want) {
			t.Errorf("token %q, %v, want %s in it", token, err, want)
		}
		if targets := r.Config().Targets; len(targets) != 1 {
			t.Errorf("targets %v", targets)
		}
	}
	var stored string
	if err := connect(t, url).QueryRow(t.Context(), `select settings::text from rooms where room_id = $1`, r.ID).Scan(&stored); err != nil || strings.Contains(stored, queueItKey) || !strings.Contains(stored, "arena") {
		t.Errorf("stored %s, %v", stored, err)
	}
	if err := r.ClearQueueIt(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is over everywhere", func() bool { _, ok := other.QueueIt(); return !ok })
	if token, err := r.QueueItToken(t.Context(), st); token != "" || err != nil {
		t.Errorf("token %q afterwards, %v", token, err)
	}
	if _, ok := errors.AsType[*invalid.Error](r.SetQueueIt(t.Context(), QueueIt{CustomerID: "arena"}, "")); !ok {
		t.Error("the key of before is still there")
	}
}

// TestQueueItProblems finds everything that is wrong.
func TestQueueItProblems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		customer, key string
		hasKey        bool
		want          string // fields
	}{
		"all is well":      {"arena", queueItKey, false, ""},
		"the key stays":    {"arena", "", true, ""},
		"nothing":          {"", "", false, "customer_id secret_key"},
		"no key":           {"arena", "", false, "secret_key"},
		"a short key":      {"arena", queueItKey[:31], true, "secret_key"},
		"a long key":       {"arena", strings.Repeat("x", MaxQueueItKey+1), true, "secret_key"},
		"a key with space": {"arena", queueItKey + " ", true, "secret_key"},
		"a key of letters": {"arena", strings.Repeat("\u00e9", 32), true, "secret_key"},
		"another customer": {"are_na", queueItKey, false, "customer_id"},
		"a long customer":  {strings.Repeat("a", 64), queueItKey, false, "customer_id"},
		"customer and a /": {"arena/x", queueItKey, false, "customer_id"},
	} {
		var fields []string
		for _, p := range (&QueueIt{CustomerID: c.customer}).problems(c.key, c.hasKey) {
			fields = append(fields, p.Field)
			if c.key != "" && strings.Contains(p.Detail, c.key) {
				t.Errorf("%s: the detail has the key", name)
			}
		}
		if got := strings.Join(fields, " "); got != c.want {
			t.Errorf("%s: problems with %q, want %q", name, got, c.want)
		}
	}
}

// TestQueueItOtherMaster: with another master key there are no tokens, and the
// error does not say what was sealed.
func TestQueueItOtherMaster(t *testing.T) {
	t.Parallel()
	r := create(t, node(t, pgtest.URL(t), newMaster(t)), Config{Slug: "sealed"})
	if err := r.SetQueueIt(t.Context(), QueueIt{CustomerID: "arena"}, queueItKey); err != nil {
		t.Fatal(err)
	}
	r.flow.master = newMaster(t)
	if token, err := r.QueueItToken(t.Context(), fairness.Standing{Ticket: newVisitor(r).ticket}); token != "" || !errors.Is(err, keys.ErrMasterKey) {
		t.Errorf("token %q, %v", token, err)
	}
}

// TestQueueItKeepsPlace: connectors of queue-it redeem nothing, so a visitor who
// got a token keeps the place for the session, and who did not for the pass.
func TestQueueItKeepsPlace(t *testing.T) {
	t.Parallel()
	c := quick("tokens")
	c.Session = span(time.Hour)
	d, nodes, rooms := dialed(t, c)
	if err := rooms[0].SetQueueIt(t.Context(), QueueIt{CustomerID: "arena"}, queueItKey); err != nil {
		t.Fatal(err)
	}
	there, _ := admit(t, rooms[0])
	admit(t, rooms[0])
	st, _ := rooms[0].Standing(there.ticket)
	token := func() string {
		token, err := rooms[0].QueueItToken(t.Context(), st)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	if got := token(); !strings.Contains(got, "~cv_60~") {
		t.Errorf("token %s, want 60 minutes", got)
	}
	d.pass(30*time.Minute, nodes[:]...)
	if got := token(); !strings.Contains(got, "~cv_30~") {
		t.Errorf("token %s, want 30 minutes", got)
	}
	for n, r := range rooms {
		if !r.IsIn(t.Context(), st) {
			t.Errorf("node %d: the visit is over", n)
		}
		eventually(t, "one place is free", func() bool { return present(r) == 1 })
	}
}
