package room

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/issuertest"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/door"
	"github.com/proofline/proofline/room/evidence"
	"github.com/proofline/proofline/room/keys"
)

// issuers vouch for visitors of the rooms of [doorConfig].
type issuers struct{ task, club, phone *issuertest.Issuer }

var vouchers = issuers{issuertest.Work("task", 16), issuertest.Signed("club", 5), issuertest.Blind("phone", 0)}

// doorConfig is a room whose first lane needs work, whose second one a club, and whose third one a club and a phone.
func doorConfig(slug string) Config {
	return Config{
		Slug: slug, Windows: []WindowRule{{Length: Duration(time.Hour)}}, Beacon: "drand:test",
		Methods: []credential.Method{vouchers.task.Method, vouchers.club.Method, vouchers.phone.Method},
		Lanes: []LaneRule{
			{Name: "general", Weight: 3, Needs: []string{"task"}}, {Name: "members", Weight: 1, Needs: []string{"club"}},
			{Name: "board", Weight: 1, Needs: []string{"club", "phone"}},
		},
	}
}

// show returns the credentials of an account for a ticket in a lane.
func show(r *Room, t fairness.Ticket, lane fairness.Lane, account int, methods ...string) (list []credential.Credential) {
	s := subject(r, t, lane)
	for _, name := range methods {
		issuer := map[string]*issuertest.Issuer{"task": vouchers.task, "club": vouchers.club, "phone": vouchers.phone}[name]
		list = append(list, issuer.Show(s, account))
	}
	return list
}

// subject is made as a device makes it, from the room's public state.
func subject(r *Room, t fairness.Ticket, lane fairness.Lane) credential.Subject {
	d := r.Snapshot().Door
	return credential.Subject{Room: d.Entry, Lane: string(lane), Ticket: t, Round: d.Work.Signature}
}

// doorNodes runs servers on one database, with a beacon.
func doorNodes(t testing.TB, n int) ([]*Rooms, *testBeacon) {
	t.Helper()
	b, url, master := newBeacon(t), pgtest.URL(t), newMaster(t)
	nodes := make([]*Rooms, n)
	for i := range nodes {
		nodes[i] = doorNode(t, url, master, b)
	}
	return nodes, b
}

func doorNode(t testing.TB, url string, master *keys.MasterKey, b *testBeacon) *Rooms {
	t.Helper()
	return start(t, connect(t, url), Options{MasterKey: master, Chains: []evidence.Chain{b.chain()}})
}

func waitForWork(t testing.TB, r *Room) {
	t.Helper()
	eventually(t, "the round of work is in the transcript", func() bool { return r.Snapshot().Door.Work.Signature != nil })
}

// failure names the error of a join or merit, and what it is about.
func failure(err error) string {
	var malformed *door.MalformedError
	var unknown *door.UnknownMethodError
	var missing *door.MissingError
	var wrong *door.InvalidError
	var used *door.UsedError
	var full *door.FullError
	var work *door.WorkError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &malformed):
		field, _, _ := strings.Cut(err.Error(), " ")
		return "malformed " + field
	case errors.As(err, &unknown):
		return "unknown " + unknown.Method
	case errors.As(err, &missing):
		return "missing " + strings.Join(missing.Methods, ",")
	case errors.As(err, &wrong):
		return "invalid " + wrong.Method
	case errors.As(err, &used):
		return "used " + used.Method
	case errors.As(err, &full):
		return fmt.Sprint("full ", full.Method, " ", full.Limit)
	case errors.As(err, &work):
		return fmt.Sprint("work ", work.Wait > 0)
	}
	return err.Error()
}

// TestDoor joins lanes with all kinds of credentials, in any order, and tries each way to be wrong. None of the refused
// ones leaves a trace in the transcript.
func TestDoor(t *testing.T) {
	t.Parallel()
	nodes, b := doorNodes(t, 1)
	r, other := create(t, nodes[0], doorConfig("door")), create(t, nodes[0], doorConfig("other"))
	v := newVisitor(r)
	early := subject(r, v.ticket, "general")
	early.Round = nil
	_, err := r.JoinLane(t.Context(), v.ticket, "", 1, vouchers.task.Show(early, 0))
	if got := failure(err); !strings.HasPrefix(got, "work ") && got != "invalid task" { // the round may have come already
		t.Errorf("before the round: %v", err)
	}
	waitForWork(t, r)
	waitForWork(t, other)
	size := r.Snapshot().Size
	club := show(r, v.ticket, "members", 1, "club")
	altered := func(change func(c *credential.Credential)) []credential.Credential {
		c := club[0]
		c.Evidence, c.Nullifier = slices.Clone(c.Evidence), slices.Clone(c.Nullifier)
		change(&c)
		return []credential.Credential{c}
	}
	foreign := issuertest.Signed("fans", 0)
	foreign.Method.Name = "club"
	for name, c := range map[string]struct {
		lane fairness.Lane
		list []credential.Credential
		want string
	}{
		"nothing":            {"members", nil, "missing club"},
		"nothing at all":     {"board", nil, "missing club,phone"},
		"half":               {"board", show(r, v.ticket, "board", 1, "club"), "missing phone"},
		"another method":     {"members", show(r, v.ticket, "members", 1, "phone"), "missing club"},
		"an unknown method":  {"members", altered(func(c *credential.Credential) { c.Method = "fans" }), "unknown fans"},
		"twice":              {"members", append(club, club...), "malformed credentials[1].method"},
		"another lane":       {"members", show(r, v.ticket, "board", 1, "club"), "invalid club"},
		"another room":       {"members", show(other, v.ticket, "members", 1, "club"), "invalid club"},
		"another ticket":     {"members", show(r, newVisitor(r).ticket, "members", 1, "club"), "invalid club"},
		"another issuer":     {"members", []credential.Credential{foreign.Show(subject(r, v.ticket, "members"), 1)}, "invalid club"},
		"another nullifier":  {"members", altered(func(c *credential.Credential) { c.Nullifier[0] ^= 1 }), "invalid club"},
		"another signature":  {"members", altered(func(c *credential.Credential) { c.Evidence[0] ^= 1 }), "invalid club"},
		"S out of range":     {"members", altered(func(c *credential.Credential) { c.Evidence[63] |= 0x10 }), "invalid club"},
		"no nullifier":       {"members", altered(func(c *credential.Credential) { c.Nullifier = nil }), "malformed credentials[0].nullifier"},
		"a short signature":  {"members", altered(func(c *credential.Credential) { c.Evidence = c.Evidence[:63] }), "malformed credentials[0].evidence"},
		"work of another":    {"general", show(r, newVisitor(r).ticket, "general", 0, "task"), "invalid task"},
		"work of other room": {"general", show(other, v.ticket, "general", 0, "task"), "invalid task"},
	} {
		if _, err := r.JoinLane(t.Context(), v.ticket, c.lane, 1, c.list...); failure(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if now := r.Snapshot(); now.Size != size || now.Counts.Arrivals != 0 {
		t.Errorf("%d entries and %d arrivals, from refused joins alone", now.Size-size, now.Counts.Arrivals)
	}

	board := show(r, v.ticket, "board", 1, "phone", "club") // in another order than the policy's
	joined, err := r.JoinLane(t.Context(), v.ticket, "board", 1, board...)
	if err != nil || joined.Again || joined.Lane != "board" {
		t.Fatalf("%+v, %v", joined, err)
	}
	checkReceipt(t, r, joined, board[1], board[0])
	again, err := r.JoinLane(t.Context(), v.ticket, "board", 1)
	if err != nil || !again.Again || again.Index != joined.Index {
		t.Errorf("a join repeated without credentials: %+v, %v", again, err)
	}
	second := newVisitor(r)
	for lane, list := range map[fairness.Lane][]credential.Credential{
		"members": show(r, second.ticket, "members", 1, "club"),
		"general": append(show(r, second.ticket, "general", 1, "club"), show(r, second.ticket, "general", 0, "task")...),
	} {
		if _, err := r.JoinLane(t.Context(), second.ticket, lane, 1, list...); failure(err) != "used club" {
			t.Errorf("the same account in lane %s: %v", lane, err)
		}
	}
	if _, err := r.JoinLane(t.Context(), second.ticket, "", 1, show(r, second.ticket, "general", 0, "task")...); err != nil {
		t.Errorf("work: %v", err)
	}
	if err := r.Leave(t.Context(), v.ticket, v.secret); err != nil {
		t.Fatal(err)
	}
	third := newVisitor(r)
	if _, err := r.JoinLane(t.Context(), third.ticket, "members", 1, show(r, third.ticket, "members", 1, "club")...); failure(err) != "used club" {
		t.Errorf("after the ticket has left: %v", err)
	}
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	auditRoom(t, r)
	audited(t, r, b)
}

// TestDoorLimit: of many joins at the same moment, as many get in as the limit allows, and one for each account.
func TestDoorLimit(t *testing.T) {
	t.Parallel()
	b, url, master := newBeacon(t), pgtest.URL(t), newMaster(t)
	c := doorConfig("limit")
	first := create(t, doorNode(t, url, master, b), c)
	rooms := []*Room{first, get(t, doorNode(t, url, master, b), c.Slug)}
	for _, r := range rooms {
		waitForWork(t, r)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	counts := map[string]int{}
	for account := range 20 {
		for range 2 {
			v := newVisitor(first)
			list := show(first, v.ticket, "members", account, "club")
			for _, r := range rooms { // one ticket through both nodes is one arrival
				all.Go(func() {
					joined, err := r.JoinLane(t.Context(), v.ticket, "members", 1, list...)
					mu.Lock()
					defer mu.Unlock()
					if counts[failure(err)]++; err == nil && joined.Again {
						counts["again"]++
					}
				})
			}
		}
	}
	all.Wait()
	for _, r := range rooms {
		eventually(t, "five are in", func() bool { return r.Snapshot().Counts.Arrivals == 5 })
		if d := r.Snapshot().Door; d.Methods[1].Taken != 5 || d.Methods[0].Taken != 0 {
			t.Errorf("taken: %+v", d.Methods)
		}
	}
	if counts[""]-counts["again"] != 5 || counts["full club 5"] == 0 || counts[""]+counts["full club 5"]+counts["used club"] != 80 {
		t.Errorf("answers: %v", counts)
	}
	if n := count(t, url, first, fairness.KindBeat); n != 1 {
		t.Errorf("%d beats, want the round of work once", n)
	}
	auditRoom(t, first)
}

// TestDoorAfterRestart: a server that starts again knows what was used, writes the round of work that it missed, and
// takes no credential again.
func TestDoorAfterRestart(t *testing.T) {
	t.Parallel()
	b, url, master := newBeacon(t), pgtest.URL(t), newMaster(t)
	b.isAway.Store(true)
	before := doorNode(t, url, master, b)
	r := create(t, before, doorConfig("restart"))
	v := newVisitor(r)
	if _, err := r.JoinLane(t.Context(), v.ticket, "members", 1, show(r, v.ticket, "members", 1, "club")...); err != nil {
		t.Fatal(err)
	}
	if err := before.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.isAway.Store(false)
	r = get(t, doorNode(t, url, master, b), "restart")
	waitForWork(t, r)
	w := newVisitor(r)
	if _, err := r.JoinLane(t.Context(), w.ticket, "members", 1, show(r, w.ticket, "members", 1, "club")...); failure(err) != "used club" {
		t.Errorf("used before the restart: %v", err)
	}
	if _, err := r.JoinLane(t.Context(), w.ticket, "", 1, show(r, w.ticket, "general", 0, "task")...); err != nil {
		t.Error(err)
	}
	if again, err := r.JoinLane(t.Context(), v.ticket, "members", 1); err != nil || !again.Again {
		t.Errorf("%+v, %v", again, err)
	}
	audited(t, r, b)
}

// TestMerit shows credentials after the arrival.
func TestMerit(t *testing.T) {
	t.Parallel()
	d, master := newDial(t), newMaster(t)
	b := newBeaconAt(t, d.Now)
	nodes := []*Rooms{doorNode(t, d.url, master, b), doorNode(t, d.url, master, b)}
	c := doorConfig("merit")
	r := create(t, nodes[0], c)
	elsewhere := get(t, nodes[1], c.Slug)
	waitForWork(t, r)
	v, w := newVisitor(r), newVisitor(r)
	club := show(r, v.ticket, "general", 1, "club")[0]
	if _, err := r.Show(t.Context(), v.ticket, v.secret, club); !errors.Is(err, ErrTicketUnknown) {
		t.Errorf("before the join: %v", err)
	}
	for _, own := range []visitor{v, w} {
		if _, err := r.JoinLane(t.Context(), own.ticket, "", 1, show(r, own.ticket, "general", 0, "task")...); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Show(t.Context(), v.ticket, w.secret, club); !errors.Is(err, ErrSecret) {
		t.Errorf("another secret: %v", err)
	}
	if _, err := r.Show(t.Context(), v.ticket, v.secret, show(r, v.ticket, "members", 1, "club")[0]); failure(err) != "invalid club" {
		t.Errorf("another lane: %v", err)
	}
	m, err := elsewhere.Show(t.Context(), v.ticket, v.secret, club)
	if err != nil || m.Again || m.Entry == 0 {
		t.Fatalf("%+v, %v", m, err)
	}
	receipt, err := m.AppendReceipt(t.Context(), nil)
	if err != nil || !strings.Contains(string(receipt), fmt.Sprintf("\nindex %d\n", m.Entry)) {
		t.Errorf("receipt %s, %v", receipt, err)
	}
	for _, r := range []*Room{elsewhere, r} {
		eventually(t, "the node knows the merit", func() bool { return r.Snapshot().Door.Methods[1].Taken == 1 })
		again, err := r.Show(t.Context(), v.ticket, v.secret, club)
		if err != nil || !again.Again || again.Entry != m.Entry {
			t.Errorf("repeated: %+v, %v", again, err)
		}
		if list := string(r.Transcript.Merits(v.ticket)); list != fmt.Sprintf("club %d\n", m.Entry) {
			t.Errorf("merits %q", list)
		}
	}
	atJoin, err := r.Show(t.Context(), v.ticket, v.secret, show(r, v.ticket, "general", 1, "task")[0])
	if err != nil || !atJoin.Again || atJoin.Entry != uint64(atJoin.Index) {
		t.Errorf("shown at the join: %+v, %v", atJoin, err)
	}
	if _, err := r.Show(t.Context(), w.ticket, w.secret, show(r, w.ticket, "general", 1, "club")[0]); failure(err) != "used club" {
		t.Errorf("the same account: %v", err)
	}
	if _, err := r.Show(t.Context(), w.ticket, w.secret, credential.Credential{Method: "fans", Evidence: []byte{1}}); failure(err) != "unknown fans" {
		t.Errorf("an unknown method: %v", err)
	}
	d.pass(2*time.Hour, nodes...) // the window is over
	if _, err := r.Show(t.Context(), w.ticket, w.secret, show(r, w.ticket, "general", 2, "club")[0]); !errors.Is(err, door.ErrLate) {
		t.Errorf("after the window: %v", err)
	}
	if diff := cmp.Diff(fairness.General, m.Lane); diff != "" {
		t.Error(diff)
	}
	auditRoom(t, r)
	audited(t, r, b)
}

// TestDoorBeforeDurable: a request that is repeated while its first one is being stored gets the same answer, once that
// is stored: its own credential is not used by another ticket.
func TestDoorBeforeDurable(t *testing.T) {
	t.Parallel()
	b, url, master := newBeacon(t), pgtest.URL(t), newMaster(t)
	r := create(t, doorNode(t, url, master, b), doorConfig("slow"))
	waitForWork(t, r)
	v, w := newVisitor(r), newVisitor(r)
	if _, err := r.JoinLane(t.Context(), w.ticket, "", 1, show(r, w.ticket, "general", 0, "task")...); err != nil {
		t.Fatal(err)
	}
	superuser(t, url, `create function wait() returns trigger language plpgsql as $$ begin perform pg_sleep(1); return new; end $$`)
	superuser(t, url, `create trigger wait before insert on log_bundles for each row execute function wait()`)
	club, merit := show(r, v.ticket, "members", 1, "club"), show(r, w.ticket, "general", 2, "club")[0]
	for name, do := range map[string]func() (again bool, err error){
		"join": func() (bool, error) {
			j, err := r.JoinLane(t.Context(), v.ticket, "members", 1, club...)
			return j.Again, err
		},
		"show": func() (bool, error) {
			m, err := r.Show(t.Context(), w.ticket, w.secret, merit)
			return m.Again, err
		},
	} {
		first := make(chan error, 1)
		go func() {
			again, err := do()
			if err == nil && again {
				err = errors.New("again")
			}
			first <- err
		}()
		time.Sleep(300 * time.Millisecond)
		size := r.Snapshot().Size
		again, err := do()
		if err != nil || !again {
			t.Errorf("%s, repeated: again %t, %v", name, again, err)
		}
		if err == nil && r.Snapshot().Size == size {
			t.Errorf("%s, repeated: the answer came before the entry was stored", name)
		}
		if err := <-first; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	auditRoom(t, r)
}

// TestMeritAfterEnd: a room that has ended takes no credentials, even of tickets whose window is not over.
func TestMeritAfterEnd(t *testing.T) {
	t.Parallel()
	nodes, _ := doorNodes(t, 1)
	r := create(t, nodes[0], doorConfig("over"))
	waitForWork(t, r)
	v := newVisitor(r)
	if _, err := r.JoinLane(t.Context(), v.ticket, "", 1, show(r, v.ticket, "general", 0, "task")...); err != nil {
		t.Fatal(err)
	}
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	club := show(r, v.ticket, "general", 1, "club")[0]
	if _, err := r.Show(t.Context(), v.ticket, v.secret, club); !errors.Is(err, door.ErrLate) {
		t.Errorf("%v, want %v", err, door.ErrLate)
	}
}

// TestNoMethods: a room without methods takes no credentials.
func TestNoMethods(t *testing.T) {
	t.Parallel()
	nodes, _ := doorNodes(t, 1)
	r := create(t, nodes[0], Config{Slug: "plain", Windows: []WindowRule{{Length: Duration(time.Hour)}}})
	v := newVisitor(r)
	c := credential.Credential{Method: "club", Evidence: []byte{1}}
	if _, err := r.JoinLane(t.Context(), v.ticket, "", 1, c); failure(err) != "unknown club" {
		t.Error(err)
	}
	if _, err := r.Join(t.Context(), v.ticket); err != nil || r.Snapshot().Door != nil {
		t.Error(err, r.Snapshot().Door)
	}
	if _, err := r.Show(t.Context(), v.ticket, v.secret, c); failure(err) != "unknown club" {
		t.Error(err)
	}
}
