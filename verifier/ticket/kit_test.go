package ticket

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
)

const origin = "queue.example.com/r/ticket"

func newKeys(t testing.TB, operator string) *roomtest.Keys {
	t.Helper()
	keys, err := roomtest.NewKeys(origin, operator)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// scripted writes a room of three windows with 7, 12 and 5 visitors, in which joins come between the places
// of the previous window.
func scripted(t testing.TB, keys *roomtest.Keys) *roomtest.Room {
	t.Helper()
	at := func(seconds int) fairness.Time { return roomtest.Opens + fairness.Time(seconds)*1000 }
	r := roomtest.Open(keys, keys.Policy())
	r.Join(at(5), 7)
	r.Append(&fairness.Amend{Time: at(59), Change: fairness.ChangeMessage, Message: sha256.Sum256([]byte("soon"))})
	r.Freeze(at(60))
	r.Draw(at(60))
	r.Assign(3)
	r.Join(at(61), 6)
	r.Assign(-1)
	r.Call(at(62), 2)
	r.Join(at(69), 6)
	r.Freeze(at(70))
	r.Join(at(70), 5)
	r.Draw(at(70))
	r.Join(at(71), 2)
	r.Assign(3)
	r.Join(at(72), 1)
	r.Assign(-1)
	r.Settle(at(80))
	r.End(at(91))
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return r
}

// tree is a log of any size, of which only some entries need to exist: subtrees without these have made-up
// roots. So an operator can sign a log of billions of entries.
type tree struct {
	keys    *roomtest.Keys
	size    uint64
	entries map[uint64][]byte
	known   map[[2]uint64]audit.Hash
}

func newTree(keys *roomtest.Keys, entries [][]byte) *tree {
	return &tree{keys, uint64(len(entries)), maps.Collect(func(yield func(uint64, []byte) bool) {
		for i, e := range entries {
			if !yield(uint64(i), e) {
				return
			}
		}
	}), map[[2]uint64]audit.Hash{}}
}

// parsed returns the entries, so that tests can change them.
func (l *tree) parsed(t testing.TB) []fairness.Entry {
	t.Helper()
	all := make([]fairness.Entry, l.size)
	for i := range all {
		e, err := fairness.ParseEntry(l.entries[uint64(i)])
		if err != nil {
			t.Fatal(err)
		}
		all[i] = e
	}
	return all
}

// rewritten returns the log of an operator who changes entries and signs again.
func (l *tree) rewritten(t testing.TB, change func([]fairness.Entry) []fairness.Entry) *tree {
	t.Helper()
	var texts [][]byte
	for _, e := range change(l.parsed(t)) {
		texts = append(texts, fairness.AppendEntry(nil, e))
	}
	return newTree(l.keys, texts)
}

// node returns the root of a subtree, or of a whole log.
func (l *tree) node(from, to uint64) audit.Hash {
	if e, ok := l.entries[from]; ok && to-from == 1 {
		return audit.LeafHash(e)
	}
	inside := func(i uint64) bool { return from <= i && i < to }
	if !slices.ContainsFunc(slices.Collect(maps.Keys(l.entries)), inside) {
		return audit.LeafHash(fmt.Appendf(nil, "made up: %d to %d", from, to))
	}
	at := [2]uint64{from, to}
	if _, ok := l.known[at]; !ok {
		middle := from + split(to-from)
		l.known[at] = tlog.NodeHash(l.node(from, middle), l.node(middle, to))
	}
	return l.known[at]
}

// path is PATH(m, D[n]) in RFC 6962, section 2.1.1.
func (l *tree) path(index, from, to uint64) Hashes {
	if to-from <= 1 {
		return nil
	}
	middle := from + split(to-from)
	if index < middle {
		return append(l.path(index, from, middle), l.node(middle, to))
	}
	return append(l.path(index, middle, to), l.node(from, middle))
}

// growth is PROOF(m, D[n]) in RFC 6962, section 2.1.2.
func (l *tree) growth(old uint64) Hashes {
	var subproof func(from, to uint64, known bool) Hashes
	subproof = func(from, to uint64, known bool) Hashes {
		if old == to {
			if known {
				return Hashes{}
			}
			return Hashes{l.node(from, to)}
		}
		middle := from + split(to-from)
		if old <= middle {
			return append(subproof(from, middle, known), l.node(middle, to))
		}
		return append(subproof(middle, to, false), l.node(from, middle))
	}
	return subproof(0, l.size, true)
}

func (l *tree) prove(index uint64) *Proven {
	return &Proven{Number(index), l.entries[index], append(Hashes{}, l.path(index, 0, l.size)...)}
}

func (l *tree) run(from, to uint64) *Run {
	r := &Run{First: Number(from), Entries: List[Bytes]{}, Proof: Hashes{}}
	for i := from; i < to; i++ {
		r.Entries = append(r.Entries, l.entries[i])
	}
	var outside func(low, high uint64)
	outside = func(low, high uint64) {
		switch middle := low + split(max(2, high-low)); {
		case high <= from || low >= to:
			r.Proof = append(r.Proof, l.node(low, high))
		case from > low || high > to:
			outside(low, middle)
			outside(middle, high)
		}
	}
	outside(0, l.size)
	return r
}

func (l *tree) checkpoint(t testing.TB, size uint64) []byte {
	t.Helper()
	signed, err := audit.SignCheckpoint(audit.Checkpoint{Origin: l.keys.Origin, Size: size, Root: l.node(0, size)}, l.keys.Signer)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// receipt proves an entry in the tree of a given size.
func (l *tree) receipt(t testing.TB, index, size uint64) []byte {
	t.Helper()
	return audit.Proof{Index: index, Path: l.path(index, 0, size), Checkpoint: l.checkpoint(t, size)}.Marshal()
}

// find returns the first index, from a given one on, whose entry has a kind and belongs to a window, or to a
// later one.
func find(entries []fairness.Entry, from uint64, kind fairness.Kind, window fairness.WindowIndex) (uint64, bool) {
	for i := from; i < uint64(len(entries)); i++ {
		w := fairness.WindowIndex(0)
		switch e := entries[i].(type) {
		case *fairness.Freeze:
			w = e.Window
		case *fairness.Draw:
			w = e.Window
		case *fairness.Assign:
			w = e.Window
		}
		if fairness.KindOf(entries[i]) == kind && w >= window {
			return i, true
		}
	}
	return 0, false
}

// gather makes the file of the visitor whose arrival is at an index, with a receipt.
func (l *tree) gather(t testing.TB, receipt []byte, ticket fairness.Ticket, index uint64) *Bundle {
	t.Helper()
	vkey := Text(l.keys.VKey)
	b := &Bundle{Version: version, Origin: Text(l.keys.Origin), VKey: &vkey, Ticket: Text(ticket.String()), Receipt: receipt,
		Checkpoint: l.checkpoint(t, l.size), Room: l.prove(0), Amends: List[Proven]{}}
	entries := l.parsed(t)
	if index >= l.size {
		return b
	}
	b.Arrive = l.prove(index)
	if kept, err := audit.ParseProof(receipt); err == nil {
		key, err := audit.ParseKey(l.keys.VKey)
		if err != nil {
			t.Fatal(err)
		}
		if head, _, err := audit.OpenCheckpoint(kept.Checkpoint, key); err == nil && head.Size <= l.size {
			b.Growth = l.growth(head.Size)
		}
	}
	arrive, ok := entries[index].(*fairness.Arrive)
	if !ok {
		return b
	}
	at, ok := find(entries, index+1, fairness.KindFreeze, arrive.Window)
	if !ok {
		return b
	}
	for i, e := range entries {
		if m, ok := e.(*fairness.Merit); ok && m.Ticket == ticket {
			b.Merits = append(b.Merits, *l.prove(uint64(i)))
		}
	}
	b.Freeze = l.prove(at)
	freeze := entries[at].(*fairness.Freeze)
	b.Frozen = l.growth(freeze.Size)
	l.gatherPlace(b, entries, arrive, freeze, at)
	return b
}

func (l *tree) gatherPlace(b *Bundle, entries []fairness.Entry, arrive *fairness.Arrive, freeze *fairness.Freeze, at uint64) {
	drawAt, ok := find(entries, at+1, fairness.KindDraw, arrive.Window)
	if assignAt, isAssign := find(entries, at+1, fairness.KindAssign, arrive.Window); isAssign && (!ok || assignAt < drawAt) {
		drawAt, ok = assignAt, true
	}
	if !ok {
		return
	}
	b.Draw = l.prove(drawAt)
	draw, ok := entries[drawAt].(*fairness.Draw)
	if !ok {
		return
	}
	firstAt, ok := find(entries, drawAt+1, fairness.KindAssign, arrive.Window)
	for ; ok; firstAt, ok = find(entries, firstAt+1, fairness.KindAssign, arrive.Window) {
		if e := entries[firstAt].(*fairness.Assign); e.Window > arrive.Window || e.Lane == arrive.Lane {
			break
		}
	}
	if !ok {
		return
	}
	b.FirstPlace = l.run(drawAt+1, firstAt+1)
	room := entries[0].(*fairness.Room)
	lane := max(0, slices.IndexFunc(room.Lanes, func(l fairness.LaneRule) bool { return l.Name == arrive.Lane }))
	if lane >= len(freeze.Lots) {
		return
	}
	if len(room.Lots) > 0 || room.Slots > 0 {
		b.Place = l.prove(uint64(slices.IndexFunc(entries, func(e fairness.Entry) bool {
			assign, ok := e.(*fairness.Assign)
			return ok && assign.Ticket == arrive.Ticket
		})))
		return
	}
	rank := slices.Index(fairness.Shuffle(draw.Seed, arrive.Lane, freeze.Lots[lane]), arrive.Seq)
	position := entries[firstAt].(*fairness.Assign).Position + fairness.Position(max(rank, 0))
	for i := firstAt; i < l.size; i++ {
		if assign, ok := entries[i].(*fairness.Assign); ok && assign.Lane == arrive.Lane && assign.Position >= position {
			b.Place = l.prove(i)
			return
		}
	}
}

func must[T any](v T, ok bool) T {
	if !ok {
		panic("malformed")
	}
	return v
}

// clone returns a deep copy, by way of the file.
func (b *Bundle) clone(t testing.TB) *Bundle {
	t.Helper()
	again, err := Parse(b.file(t))
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func (b *Bundle) file(t testing.TB) []byte {
	t.Helper()
	file, err := b.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func reasons(lines [4]Line) [4]Reason {
	var r [4]Reason
	for i, line := range lines {
		r[i] = line.Reason
	}
	return r
}
