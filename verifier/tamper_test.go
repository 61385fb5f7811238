package verifier_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/vrf"
)

// transcript is a list of entries to tamper with. Every method returns a
// changed copy.
type transcript [][]byte

// index returns the index of the nth entry of a kind, from 0.
func (tr transcript) index(kind fairness.Kind, n int) int {
	for i, e := range tr {
		if word, _, _ := strings.Cut(string(e), " "); word != string(kind) {
			continue
		}
		if n == 0 {
			return i
		}
		n--
	}
	panic(fmt.Sprintf("not so many %s entries", kind))
}

func (tr transcript) replace(i int, text string) transcript {
	tr = slices.Clone(tr)
	tr[i] = []byte(text)
	return tr
}

func (tr transcript) drop(i int) transcript {
	return slices.Delete(slices.Clone(tr), i, i+1)
}

func (tr transcript) insert(i int, text string) transcript {
	return slices.Insert(slices.Clone(tr), i, []byte(text))
}

func (tr transcript) swap(i, j int) transcript {
	tr = slices.Clone(tr)
	tr[i], tr[j] = tr[j], tr[i]
	return tr
}

// field returns field f of entry i; field 0 is the kind.
func (tr transcript) field(i, f int) string { return strings.Split(string(tr[i]), " ")[f] }

func (tr transcript) set(i, f int, value string) transcript {
	fields := strings.Split(string(tr[i]), " ")
	fields[f] = value
	return tr.replace(i, strings.Join(fields, " "))
}

// add adds to a number in field f of entry i.
func (tr transcript) add(i, f int, n int64) transcript {
	was, err := strconv.ParseInt(tr.field(i, f), 10, 64)
	if err != nil {
		panic(err)
	}
	return tr.set(i, f, strconv.FormatInt(was+n, 10))
}

const hexDigits = "0123456789abcdef"

func stranger() string { return roomtest.Ticket(origin, 1_000_000).String() }

// attack is an operator's change of a transcript before signing it again.
type attack struct {
	name   string
	make   func(tr transcript) (transcript, int)
	checks []string
}

func attacks() []attack {
	const (
		room, arrive, freeze, draw, assign = fairness.KindRoom, fairness.KindArrive, fairness.KindFreeze, fairness.KindDraw, fairness.KindAssign
		call, admit, skip, amend, end      = fairness.KindCall, fairness.KindAdmit, fairness.KindSkip, fairness.KindAmend, fairness.KindEnd
	)
	// on tampers with entry n of a kind.
	on := func(kind fairness.Kind, n int, change func(tr transcript, i int) transcript) func(transcript) (transcript, int) {
		return func(tr transcript) (transcript, int) {
			i := tr.index(kind, n)
			return change(tr, i), i
		}
	}
	set := func(kind fairness.Kind, n, f int, value string) func(transcript) (transcript, int) {
		return on(kind, n, func(tr transcript, i int) transcript { return tr.set(i, f, value) })
	}
	add := func(kind fairness.Kind, n, f int, by int64) func(transcript) (transcript, int) {
		return on(kind, n, func(tr transcript, i int) transcript { return tr.add(i, f, by) })
	}
	line := func(old, new string) func(transcript) (transcript, int) {
		return on(room, 0, func(tr transcript, i int) transcript {
			return tr.replace(i, strings.Replace(string(tr[i]), old, new, 1))
		})
	}
	twice := func(kind fairness.Kind, n int) func(transcript) (transcript, int) {
		return func(tr transcript) (transcript, int) {
			i := tr.index(kind, n)
			return tr.insert(i+1, string(tr[i])), i + 1
		}
	}
	dropped := func(kind fairness.Kind, n int) func(transcript) (transcript, int) {
		return on(kind, n, transcript.drop)
	}
	firstFreeze := func(change func(transcript) transcript) func(transcript) (transcript, int) {
		return func(tr transcript) (transcript, int) {
			tr = change(tr)
			return tr, tr.index(freeze, 0)
		}
	}
	return []attack{
		{"no room entry", dropped(room, 0), []string{"policy"}},
		{"a second room entry", twice(room, 0), []string{"policy"}},
		{"a policy of another version", line("room 1", "room 2"), []string{"form"}},
		{"a policy with a problem", line("claim 30000", "claim 1"), []string{"policy"}},
		{"an unknown beacon scheme", line("beacon none", "beacon drand:quicknet"), []string{"form"}},
		{"a policy with windows out of order", line("window 1767225600000 60000\n", "window 1767225700000 60000\n"), []string{"policy"}},
		{"an outflow raised before any visitor joined", firstFreeze(func(tr transcript) transcript {
			return tr.replace(0, strings.Replace(string(tr[0]), "outflow 600", "outflow 601", 1))
		}), []string{"freeze"}},

		{"an arrival dropped", dropped(arrive, 1), []string{"arrival"}},
		{"the last arrival of a window dropped", firstFreeze(func(tr transcript) transcript { return tr.drop(tr.index(arrive, 7)) }), []string{"freeze"}},
		{"an arrival twice", twice(arrive, 0), []string{"arrival"}},
		{"a ticket that joins again", on(arrive, 1, func(tr transcript, i int) transcript { return tr.set(i, 4, tr.field(i-1, 4)) }), []string{"ticket"}},
		{"another visitor's arrival", firstFreeze(func(tr transcript) transcript { return tr.set(tr.index(arrive, 3), 4, stranger()) }), []string{"freeze"}},
		{"an arrival slipped in", firstFreeze(func(tr transcript) transcript {
			last := tr.index(arrive, 7)
			return tr.insert(last+1, string(tr.add(last, 3, 1).set(last, 4, stranger())[last]))
		}), []string{"freeze"}},
		{"arrivals in another order", on(arrive, 0, func(tr transcript, i int) transcript { return tr.swap(i, i+1) }), []string{"arrival"}},
		{"an arrival before the opening", set(arrive, 0, 1, strconv.FormatInt(int64(roomtest.Opens)-1, 10)), []string{"arrival"}},
		{"an arrival earlier than the one before", add(arrive, 5, 1, -59_000), []string{"time"}},
		{"an arrival in the next window", add(arrive, 7, 1, 1000), []string{"freeze"}},
		{"an arrival said to be of the window before", set(arrive, 8, 2, "0"), []string{"arrival"}},
		{"a seq left out", add(arrive, 4, 3, 1), []string{"arrival"}},
		{"a fast lane", set(arrive, 4, 5, "vip"), []string{"lane"}},
		{"a ticket that is no UUID of version 8", set(arrive, 4, 4, "00000000-0000-4000-8000-000000000000"), []string{"form"}},
		{"an arrival with two spaces", on(arrive, 4, func(tr transcript, i int) transcript {
			return tr.replace(i, strings.Replace(string(tr[i]), " ", "  ", 1))
		}), []string{"form"}},
		{"an arrival with a leading zero", on(arrive, 4, func(tr transcript, i int) transcript { return tr.set(i, 2, "00") }), []string{"form"}},
		{"an arrival with a newline", on(arrive, 4, func(tr transcript, i int) transcript { return tr.replace(i, string(tr[i])+"\n") }), []string{"form"}},
		{"a credential that the policy does not have", func(tr transcript) (transcript, int) {
			i := tr.index(arrive, 0)
			return tr.insert(i+1, fmt.Sprintf("merit %s %s 1 member - 00", tr.field(i, 1), tr.field(i, 4))), i + 1
		}, []string{"credential"}},

		{"a freeze dropped", dropped(freeze, 0), []string{"freeze"}},
		{"a freeze twice", twice(freeze, 0), []string{"freeze"}},
		{"a freeze before the window is over", func(tr transcript) (transcript, int) {
			i := tr.index(arrive, 7)
			early := tr.insert(i, string(tr[tr.index(freeze, 0)]))
			return early.set(i, 1, tr.field(i, 1)), i
		}, []string{"freeze"}},
		{"a freeze of another window", set(freeze, 0, 2, "1"), []string{"freeze"}},
		{"a freeze with a lot more", add(freeze, 0, 3, 1), []string{"freeze"}},
		{"a freeze of another size", add(freeze, 1, 4, -1), []string{"freeze"}},
		{"a freeze of another root", on(freeze, 1, func(tr transcript, i int) transcript { return tr.set(i, 5, tr.field(tr.index(freeze, 0), 5)) }), []string{"freeze"}},
		{"a freeze with a beacon round", set(freeze, 0, 6, "7"), []string{"freeze"}},
		{"a proof of another window", on(freeze, 1, func(tr transcript, i int) transcript { return tr.set(i, 7, tr.field(tr.index(freeze, 0), 7)) }), []string{"proof"}},
		{"proofs swapped between windows", on(freeze, 0, func(tr transcript, i int) transcript {
			j := tr.index(freeze, 1)
			return tr.set(i, 7, tr.field(j, 7)).set(j, 7, tr.field(i, 7))
		}), []string{"proof"}},
		{"a proof with a bit flipped", on(freeze, 2, func(tr transcript, i int) transcript {
			proof := tr.field(i, 7)
			last := strings.IndexByte(hexDigits, proof[len(proof)-1])
			return tr.set(i, 7, proof[:len(proof)-1]+hexDigits[last^1:][:1])
		}), []string{"proof"}},
		{"a freeze with a time past the draw", func(tr transcript) (transcript, int) {
			i := tr.index(freeze, 0)
			return tr.add(i, 1, 5_000), i + 1
		}, []string{"time"}},

		{"a draw dropped", dropped(draw, 0), []string{"assign"}},
		{"a draw twice", twice(draw, 0), []string{"draw", "seed-once"}},
		{"a draw before its freeze", on(freeze, 0, func(tr transcript, i int) transcript { return tr.swap(i, i+1) }), []string{"freeze"}},
		{"a draw of another window", set(draw, 0, 2, "3"), []string{"draw"}},
		{"another seed", on(draw, 0, func(tr transcript, i int) transcript { return tr.set(i, 4, tr.field(tr.index(draw, 1), 4)) }), []string{"seed"}},
		{"the seed of an earlier window", on(draw, 1, func(tr transcript, i int) transcript { return tr.set(i, 4, tr.field(tr.index(draw, 0), 4)) }), []string{"seed", "seed-once"}},
		{"a beacon signature", set(draw, 0, 3, "00ff"), []string{"beacon"}},

		{"a place dropped", dropped(assign, 2), []string{"assign", "fifo"}},
		{"a place twice", twice(assign, 2), []string{"assign", "fifo"}},
		{"two places swapped", on(assign, 0, func(tr transcript, i int) transcript {
			return tr.set(i, 4, tr.field(i+1, 4)).set(i+1, 4, tr.field(i, 4))
		}), []string{"assign"}},
		{"two place entries in another order", on(assign, 0, func(tr transcript, i int) transcript { return tr.swap(i, i+1) }), []string{"assign", "fifo"}},
		{"a place for an unknown ticket", set(assign, 1, 4, stranger()), []string{"assign"}},
		{"a place of a later window", set(assign, 1, 1, "1"), []string{"assign"}},
		{"a place of a window before", set(assign, 9, 1, "0"), []string{"assign", "fifo"}},
		{"a place in another lane", set(assign, 1, 2, "vip"), []string{"lane", "fifo"}},
		{"a place before the draw", func(tr transcript) (transcript, int) {
			i := tr.index(draw, 0)
			return tr.swap(i, i+1), i
		}, []string{"assign"}},

		{"a call dropped", dropped(call, 0), []string{"admission"}},
		{"a call twice", twice(call, 0), []string{"call"}},
		{"a call backwards", set(call, 1, 2, "2"), []string{"call"}},
		{"a call past what is drawn", set(call, 0, 2, "9"), []string{"call"}},
		{"a call of another lane", on(call, 0, func(tr transcript, i int) transcript { return tr.replace(i, string(tr[i])+" 1") }), []string{"call"}},
		{"a call before the draw", func(tr transcript) (transcript, int) {
			i := tr.index(draw, 0)
			return tr.insert(i, string(tr.set(tr.index(call, 0), 1, tr.field(i-1, 1))[tr.index(call, 0)])), i
		}, []string{"call"}},
		{"a call in a pause", func(tr transcript) (transcript, int) {
			i := tr.index(amend, 3)
			return tr.insert(i, fmt.Sprintf("call %s 5", tr.field(i, 1))), i
		}, []string{"call"}},

		{"an admission of an uncalled ticket", on(admit, 0, func(tr transcript, i int) transcript {
			other := tr.field(tr.index(assign, 6), 4)
			return tr.set(i, 2, other).set(i, 3, passOf(other))
		}), []string{"admission"}},
		{"an admission of an unknown ticket", on(admit, 0, func(tr transcript, i int) transcript {
			return tr.set(i, 2, stranger()).set(i, 3, passOf(stranger()))
		}), []string{"admission"}},
		{"an admission twice", twice(admit, 0), []string{"admission"}},
		{"an admission after being skipped", func(tr transcript) (transcript, int) {
			i := tr.index(skip, 0)
			return tr.insert(i+1, fmt.Sprintf("admit %s %s %s", tr.field(i, 1), tr.field(i, 2), passOf(tr.field(i, 2)))), i + 1
		}, []string{"admission"}},
		{"an admission before the call", func(tr transcript) (transcript, int) {
			i := tr.index(call, 0)
			early := tr.insert(i, string(tr[tr.index(admit, 0)]))
			return early.set(i, 1, tr.field(i, 1)), i
		}, []string{"admission"}},
		{"an admission too late", func(tr transcript) (transcript, int) {
			i := tr.index(skip, 1)
			return tr.replace(i, fmt.Sprintf("admit %s %s %s", tr.field(i, 1), tr.field(i, 2), passOf(tr.field(i, 2)))), i
		}, []string{"admission"}},
		{"a pass of another ticket", on(admit, 0, func(tr transcript, i int) transcript { return tr.set(i, 3, passOf(stranger())) }), []string{"admission"}},

		{"a no-show whose claim is still open", add(skip, 1, 1, -1), []string{"skip"}},
		{"a no-show that is not called", set(skip, 2, 3, "no-show"), []string{"skip"}},
		{"a skip twice", twice(skip, 0), []string{"skip"}},
		{"a skip of an admitted ticket", on(skip, 0, func(tr transcript, i int) transcript { return tr.set(i, 2, tr.field(i-1, 2)) }), []string{"skip"}},
		{"a skip of an unknown ticket", set(skip, 2, 2, stranger()), []string{"skip"}},
		{"a skip for no reason of the rules", set(skip, 0, 3, "disliked"), []string{"form"}},

		{"an amendment of the windows that have opened", set(amend, 4, 4, strconv.FormatInt(int64(roomtest.Opens)+70_000, 10)), []string{"amend"}},
		{"an amendment of a window's length to nothing", set(amend, 4, 5, "1"), []string{"amend"}},
		{"an amendment of the outflow to nothing", set(amend, 1, 3, "0"), []string{"amend"}},
		{"an amendment of a key", func(tr transcript) (transcript, int) {
			i := tr.index(amend, 1)
			return tr.set(i, 2, "vrf"), i
		}, []string{"form"}},
		{"a pause dropped", dropped(amend, 2), []string{"amend"}},
		{"a pause twice", twice(amend, 2), []string{"amend"}},
		{"an outflow that is exceeded", func(tr transcript) (transcript, int) {
			// One call per minute, but both calls at once.
			tr = tr.set(tr.index(amend, 1), 3, "1")
			first, last := tr.index(freeze, 1), tr.index(amend, 1)
			return tr[:first].insert(last+1, fmt.Sprintf("call %s 8", tr.field(last, 1))), last + 1
		}, []string{"outflow"}},

		{"an end in the middle", func(tr transcript) (transcript, int) {
			i := tr.index(call, 1)
			return tr.insert(i, "end "+tr.field(i, 1)), i + 1
		}, []string{"end"}},
		{"an end twice", twice(end, 0), []string{"end"}},
		{"an end before the entry before it", add(end, 0, 1, -60_000), []string{"time"}},

		{"an entry that is empty", on(call, 0, func(tr transcript, i int) transcript { return tr.insert(i, "") }), []string{"form"}},
		{"an entry of no known kind", on(call, 0, func(tr transcript, i int) transcript { return tr.insert(i, "bribe 1") }), []string{"form"}},
		{"an entry of 65535 bytes", on(call, 0, func(tr transcript, i int) transcript {
			return tr.insert(i, "call "+strings.Repeat("9", audit.MaxEntrySize-5))
		}), []string{"form"}},
	}
}

func passOf(ticket string) string {
	id, err := fairness.ParseTicket(ticket)
	if err != nil {
		panic(err)
	}
	return fairness.NewPassID(origin, id).String()
}

// An operator who tampers and signs again is caught by the rules: by the check made for it, which names the
// entry.
func TestTamperedAndSignedAgain(t *testing.T) {
	keys, room := small(t)
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) {
			tampered, at := a.make(room.Entries())
			r := auditOf(t, publish(t, keys, tampered), verifier.Trust{VKey: keys.VKey})
			wantFailed(t, r, a.checks...)
			for _, id := range failed(r) {
				want := fmt.Sprintf("entry %d %.120q: ", at, tampered[at])
				if detail := check(t, r, id).Detail; !strings.HasPrefix(detail, want) || len(detail) == len(want) {
					t.Errorf("%s: %s\nwant %s, and why", id, detail, want)
				}
			}
			if c := check(t, r, "history"); c.Status != verifier.Pass {
				t.Errorf("history: %+v", c)
			}
		})
	}
}

// The same attacks without a new signature are caught by the history check, which names the first entry that
// differs.
func TestTamperedAndNotSigned(t *testing.T) {
	keys, room := small(t)
	honest := publish(t, keys, room.Entries())
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) {
			tampered, _ := a.make(room.Entries())
			r := auditOf(t, unsigned(t, honest, len(room.Entries()), tampered), verifier.Trust{VKey: keys.VKey})
			if r.OK || r.Level != 0 || check(t, r, "signature").Status != verifier.Pass {
				t.Errorf("report: %+v", r)
			}
			c := check(t, r, "history")
			want := firstDifference(room.Entries(), tampered)
			if c.Status != verifier.Fail || !strings.Contains(c.Detail, want) {
				t.Errorf("history: %+v\nwant %q", c, want)
			}
		})
	}
}

// unsigned returns a published log of n entries whose only bundle has other entries.
func unsigned(t *testing.T, honest roomtest.Files, n int, entries [][]byte) roomtest.Files {
	t.Helper()
	if n >= audit.TileWidth {
		t.Fatal("more than one bundle")
	}
	var bundle []byte
	for _, e := range entries {
		var err error
		if bundle, err = audit.AppendBundle(bundle, e); err != nil {
			t.Fatal(err)
		}
	}
	files := honest.Clone()
	files[audit.Tile{Level: -1, Width: n}.Path()] = bundle
	return files
}

// firstDifference returns the report's description of the first entry that differs.
func firstDifference(honest, tampered [][]byte) string {
	for i := range honest {
		switch {
		case i == len(tampered):
			return fmt.Sprintf("%d entries, not %d", i, len(honest))
		case string(tampered[i]) != string(honest[i]):
			return fmt.Sprintf("not as signed is entry %d ", i)
		}
	}
	return fmt.Sprintf("bytes after entry %d", len(honest))
}

// mutation is a mechanical change at one entry.
type mutation struct {
	name string
	make func(tr transcript, i int) transcript
}

func mutations(tr transcript) []mutation {
	list := []mutation{
		{"drop", transcript.drop},
		{"duplicate", func(tr transcript, i int) transcript { return tr.insert(i, string(tr[i])) }},
		{"swap", func(tr transcript, i int) transcript { return tr.swap(i, min(i+1, len(tr)-1)) }},
		{"truncate text", func(tr transcript, i int) transcript { return tr.replace(i, string(tr[i][:len(tr[i])-1])) }},
		{"cut last field", func(tr transcript, i int) transcript {
			return tr.replace(i, string(tr[i][:strings.LastIndexByte(string(tr[i]), ' ')]))
		}},
		{"lengthen", func(tr transcript, i int) transcript { return tr.replace(i, string(tr[i])+" 1") }},
		{"flip case", func(tr transcript, i int) transcript { return tr.replace(i, strings.ToUpper(string(tr[i]))) }},
	}
	for f := 1; f <= 7; f++ {
		list = append(list,
			mutation{fmt.Sprintf("field %d up", f), func(tr transcript, i int) transcript { return tr.nudge(i, f, 1) }},
			mutation{fmt.Sprintf("field %d down", f), func(tr transcript, i int) transcript { return tr.nudge(i, f, -1) }})
	}
	kinds := []fairness.Kind{
		fairness.KindRoom, fairness.KindArrive, fairness.KindFreeze, fairness.KindDraw, fairness.KindAssign,
		fairness.KindCall, fairness.KindAdmit, fairness.KindSkip, fairness.KindAmend, fairness.KindEnd,
	}
	for _, kind := range kinds {
		text := string(tr[tr.index(kind, 0)])
		list = append(list, mutation{"insert " + string(kind), func(tr transcript, i int) transcript { return tr.insert(i, text) }})
	}
	return list
}

// nudge changes the last character of a field to its neighbour, if there is such a field: a digit, a letter
// of a word, or a bit of a hash.
func (tr transcript) nudge(i, f, by int) transcript {
	fields := strings.Split(string(tr[i]), " ")
	if f >= len(fields) || fields[f] == "" {
		return tr
	}
	text := []byte(fields[f])
	text[len(text)-1] += byte(by)
	return tr.set(i, f, string(text))
}

// stillARoom lists the changes after which the transcript is that of a room that the operator could have run.
// No rule can catch them, only an earlier checkpoint that was kept. All of them are after the last freeze,
// because its root fixes everything before it.
var stillARoom = map[string]bool{
	// An entry with a later time.
	"field 1 up: entry 43, draw":  true,
	"field 1 up: entry 48, call":  true,
	"field 1 up: entry 50, admit": true,
	"field 1 up: entry 51, skip":  true,
	"field 1 up: entry 52, end":   true,
	// A call of one visitor fewer, or one more, which the outflow allows.
	"field 2 down: entry 48, call": true,
	"field 2 up: entry 48, call":   true,
	// The last place is not published yet. It follows from the seed.
	"drop: entry 47, assign": true,
	"swap: entry 47, assign": true, // with a call, which needs only the draw
	// A visitor did not come, or came just before the other.
	"drop: entry 49, admit": true,
	"drop: entry 50, admit": true,
	"swap: entry 49, admit": true,
	"drop: entry 51, skip":  true,
	// The room has not ended yet.
	"drop: entry 52, end": true,
}

// Every mechanical change of every entry, signed again, is caught by a rule, or is in the list above and
// caught by a kept checkpoint.
func TestEveryMutation(t *testing.T) {
	if testing.Short() {
		t.Skip("one audit after the other: there is nothing for the race detector")
	}
	keys, room := small(t)
	honest := transcript(room.Entries())
	kept := publish(t, keys, honest)[roomtest.CheckpointPath]
	fine := map[string]bool{}
	for i := range honest {
		for _, m := range mutations(honest) {
			tampered := m.make(honest, i)
			if slices.EqualFunc(tampered, honest, slices.Equal) {
				continue
			}
			name := fmt.Sprintf("%s: entry %d, %s", m.name, i, honest.field(i, 0))
			files := publish(t, keys, tampered)
			r := auditOf(t, files, verifier.Trust{VKey: keys.VKey})
			if r.OK {
				fine[name] = true
			} else if !strings.Contains(check(t, r, failed(r)[0]).Detail, "entry ") {
				t.Errorf("%s: no entry named: %+v", name, check(t, r, failed(r)[0]))
			}
			r = auditOf(t, files, verifier.Trust{VKey: keys.VKey, Kept: kept})
			if r.OK || r.Level != 0 {
				t.Errorf("%s: not caught by the kept checkpoint", name)
			}
		}
	}
	if diff := cmp.Diff(stillARoom, fine); diff != "" {
		t.Errorf("changes that leave a room (-want +got):\n%s", diff)
	}
}

// An operator who holds all keys can run another room instead: without one arrival, and with new freezes,
// draws and places. Its own report is fine, but a checkpoint kept from the first room shows the fork.
func TestRewrittenFromAnArrivalOn(t *testing.T) {
	keys, room := small(t)
	policy := keys.Policy()
	other := roomtest.Open(keys, policy)
	other.Join(roomtest.Opens+1000, 4)
	other.Settle(roomtest.Opens + 60_000)
	for other.Err() == nil && len(other.Entries()) < len(room.Entries()) {
		other.Join(roomtest.Opens+65_000, 1)
	}
	files := publish(t, keys, other.Entries())
	if r := auditOf(t, files, verifier.Trust{VKey: keys.VKey}); !r.OK {
		t.Fatalf("the other room: %+v", r)
	}
	for _, size := range []int{3, 6, 40, len(room.Entries())} {
		kept := publish(t, keys, room.Entries()[:size])[roomtest.CheckpointPath]
		wantFailed(t, auditOf(t, files, verifier.Trust{VKey: keys.VKey, Kept: kept}), "append-only")
	}
}

func TestSwappedKeys(t *testing.T) {
	keys, room := small(t)
	honest := publish(t, keys, room.Entries())
	rival := newKeys(t, origin, "rival")
	elsewhere := newKeys(t, "queue.example.com/r/other", "honest")
	byRival := honest.Clone()
	byRival[roomtest.CheckpointPath] = publish(t, rival, room.Entries())[roomtest.CheckpointPath]
	ofElsewhere := honest.Clone()
	ofElsewhere[roomtest.CheckpointPath] = publish(t, elsewhere, room.Entries())[roomtest.CheckpointPath]
	rivalRoom := roomtest.Small(rival, rival.Policy())
	if rivalRoom.Err() != nil {
		t.Fatal(rivalRoom.Err())
	}
	for _, c := range []struct {
		name   string
		files  roomtest.Files
		vkey   string
		failed []string
	}{
		{"another key given", honest, rival.VKey, []string{"signature", "identity"}},
		{"key of another room given", honest, elsewhere.VKey, []string{"signature", "identity"}},
		{"no key given", honest, "no key", []string{"signature", "identity"}},
		{"checkpoint signed by a rival", byRival, "", []string{"signature"}},
		{"checkpoint signed by a rival, key given", byRival, keys.VKey, []string{"signature"}},
		{"checkpoint signed by a rival, rival's key given", byRival, rival.VKey, []string{"identity"}},
		{"checkpoint of another room", ofElsewhere, "", []string{"signature", "identity"}},
		{"checkpoint of another room, its key given", ofElsewhere, elsewhere.VKey, []string{"identity"}},
		{"room of a rival under the same name", publish(t, rival, rivalRoom.Entries()), keys.VKey, []string{"signature", "identity"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantFailed(t, auditOf(t, c.files, verifier.Trust{VKey: c.vkey}), c.failed...)
		})
	}
}

// A room whose freezes are proven by another key than its policy's, or whose key is not a point of the curve.
func TestSwappedVRFKey(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	noPoint := [fairness.PublicKeySize]byte{2}
	for {
		if _, err := vrf.NewPublicKey(noPoint[:]); err != nil {
			break
		}
		noPoint[1]++
	}
	for _, key := range [][fairness.PublicKeySize]byte{
		[fairness.PublicKeySize]byte(newKeys(t, origin, "rival").VRF.PublicKey().Bytes()),
		noPoint,
	} {
		policy := keys.Policy()
		policy.VRFKey = key
		room := roomtest.Small(keys, policy)
		if room.Err() != nil {
			t.Fatal(room.Err())
		}
		wantFailed(t, auditOf(t, publish(t, keys, room.Entries()), verifier.Trust{}), "proof")
	}
}

func TestSwappedCheckpoints(t *testing.T) {
	keys, room := small(t)
	entries := room.Entries()
	honest := publish(t, keys, entries)
	n := len(entries)
	older := honest.Clone()
	older[roomtest.CheckpointPath] = publish(t, keys, entries[:n-1])[roomtest.CheckpointPath]
	older[audit.Tile{Level: -1, Width: n - 1}.Path()] = honest[audit.Tile{Level: -1, Width: n}.Path()]
	forked := publish(t, keys, transcript(entries).drop(n-2))
	elsewhere := newKeys(t, "queue.example.com/r/other", "honest")
	rival := newKeys(t, origin, "rival")
	kept := func(files roomtest.Files) []byte { return files[roomtest.CheckpointPath] }
	for _, c := range []struct {
		name   string
		files  roomtest.Files
		kept   []byte
		failed []string
	}{
		{"older checkpoint, newer bundle", older, nil, []string{"history"}},
		{"rolled back", publish(t, keys, entries[:n-1]), kept(honest), []string{"append-only"}},
		{"forked, shorter", forked, kept(honest), []string{"append-only"}},
		{"forked, same size", publish(t, keys, transcript(entries).swap(n-4, n-3)), kept(honest), []string{"append-only"}},
		{"forked, longer", honest, kept(forked), []string{"append-only"}},
		{"kept one of another room", honest, kept(publish(t, elsewhere, entries)), []string{"append-only"}},
		{"kept one of another key", honest, kept(publish(t, rival, entries)), []string{"append-only"}},
		{"kept one is garbage", honest, []byte("garbage"), []string{"append-only"}},
		{"kept one is empty", honest, []byte{}, []string{"append-only"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantFailed(t, auditOf(t, c.files, verifier.Trust{Kept: c.kept}), c.failed...)
		})
	}
}

// Tampering in a log of several bundles is located in the right bundle.
func TestTamperedBundleAmongSeveral(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	honest := roomtest.Files{}
	if err := roomtest.Generate(keys, honest, roomtest.Size{Visitors: 400, Windows: 3}); err != nil {
		t.Fatal(err)
	}
	bundle := func(n uint64) string { return audit.Tile{Level: -1, Index: n, Width: audit.TileWidth}.Path() }
	flip := func(path string, offset int) roomtest.Files {
		files := honest.Clone()
		files[path] = slices.Clone(files[path])
		files[path][offset] ^= 1
		return files
	}
	swapped := honest.Clone()
	swapped[bundle(1)], swapped[bundle(2)] = swapped[bundle(2)], swapped[bundle(1)]
	wrongTile := flip(bundle(2), 1000)
	leaves := audit.Tile{Level: 0, Index: 2, Width: audit.TileWidth}.Path()
	wrongTile[leaves] = flip(leaves, 0)[leaves]
	noTiles := flip(bundle(2), 1000)
	delete(noTiles, leaves)
	shortTile := flip(bundle(2), 1000)
	shortTile[leaves] = honest[leaves][:33]
	for _, c := range []struct {
		name  string
		files roomtest.Files
		words string
		not   string
	}{
		{"a byte", flip(bundle(2), 2), "first that is not as signed is entry 512 ", ""},
		{"swapped bundles", swapped, "first that is not as signed is entry 256 ", ""},
		{"a length", flip(bundle(3), 1), bundle(3), ""},
		{"tiles of hashes tampered too", wrongTile, "signed is", "entry"},
		{"tiles of hashes missing", noTiles, "signed is", "first that is not as signed"},
		{"tiles of hashes cut short", shortTile, "signed is", "first that is not as signed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := auditOf(t, c.files, verifier.Trust{VKey: keys.VKey})
			got := check(t, r, "history")
			if r.OK || got.Status != verifier.Fail || !strings.Contains(got.Detail, c.words) || c.not != "" && strings.Contains(got.Detail, c.not) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// If the history differs from the signed one, an unchanged beginning shows nothing about what is signed now.
func TestKeptIsNotDecidedWithoutHistory(t *testing.T) {
	keys, room := small(t)
	entries := room.Entries()
	honest := publish(t, keys, entries)
	kept := publish(t, keys, entries[:5])[roomtest.CheckpointPath]
	last := transcript(entries).index(fairness.KindEnd, 0)
	tampered := unsigned(t, honest, len(entries), transcript(entries).add(last, 1, 1))
	r := auditOf(t, tampered, verifier.Trust{VKey: keys.VKey, Kept: kept})
	wantFailed(t, r, "history")
	if c := check(t, r, "append-only"); c.Status != verifier.Skipped {
		t.Errorf("append-only: %+v", c)
	}
}
