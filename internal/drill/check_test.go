package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/wire"
)

const origin = "example.com/r/drill"

// visitors returns the answers to joins, with receipts, and the log's entries.
func visitors(t *testing.T, n int, salt byte) (receipts []wire.Joined, entries [][]byte, key note.Verifier) {
	t.Helper()
	signer, vkey, err := audit.NewSigner(origin, bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	if key, err = audit.ParseKey(vkey); err != nil {
		t.Fatal(err)
	}
	var leaves []audit.Hash
	for i := range n {
		j := wire.Joined{
			Ticket: fairness.NewTicket(origin, [fairness.SecretSize]byte{salt, byte(i)}).String(),
			Index:  uint64(i), Seq: uint32(i), Time: time.UnixMilli(1_700_000_000_000),
		}
		entry, err := arrival(&j)
		if err != nil {
			t.Fatal(err)
		}
		receipts, entries, leaves = append(receipts, j), append(entries, entry), append(leaves, audit.LeafHash(entry))
	}
	ext := new(audit.Tree).Extend(leaves)
	signed, err := audit.SignCheckpoint(audit.Checkpoint{Origin: origin, Size: ext.Size(), Root: ext.Root()}, signer)
	if err != nil {
		t.Fatal(err)
	}
	for i := range receipts {
		text, err := ext.AppendProofText(nil, uint64(i), signed)
		if err != nil {
			t.Fatal(err)
		}
		receipts[i].Receipt = string(text)
	}
	return receipts, entries, key
}

func check(t *testing.T, receipts []wire.Joined, entries [][]byte, key note.Verifier) (lost, others int) {
	t.Helper()
	h := history{}
	lost = len(lostReceipts(receipts, entries, key, h))
	others, err := h.others(entries)
	if err != nil {
		t.Fatal(err)
	}
	return lost, others
}

// TestLostReceipts: receipts are lost if the transcript ends before them, has another entry in their place,
// or does not fit their proof.
func TestLostReceipts(t *testing.T) {
	t.Parallel()
	receipts, entries, key := visitors(t, 9, 1)
	if lost, others := check(t, receipts, entries, key); lost != 0 || others != 0 {
		t.Errorf("of a whole transcript %d receipts are lost, and %d checkpoints are others", lost, others)
	}
	if lost, others := check(t, receipts, entries[:7], key); lost != 2 || others != 1 {
		t.Errorf("of a transcript without two entries %d receipts are lost, and %d checkpoints are others", lost, others)
	}
	changed := slices.Clone(entries)
	changed[3] = changed[4]
	if lost, others := check(t, receipts, changed, key); lost != 1 || others != 1 {
		t.Errorf("of a transcript with another entry %d receipts are lost, and %d checkpoints are others", lost, others)
	}
	receipts[5].Receipt = receipts[6].Receipt
	if lost, _ := check(t, receipts, entries, key); lost != 1 {
		t.Errorf("with one wrong proof %d receipts are lost", lost)
	}
}

// TestSecondHistory: a checkpoint of another history is found, even if its size is one that the log had.
func TestSecondHistory(t *testing.T) {
	t.Parallel()
	receipts, entries, key := visitors(t, 9, 1)
	second, _, _ := visitors(t, 9, 2)
	if lost, others := check(t, append(receipts, second...), entries, key); lost != 9 || others != 1 {
		t.Errorf("%d receipts are lost, and %d checkpoints are others", lost, others)
	}
}

func TestLostPasses(t *testing.T) {
	t.Parallel()
	entries := [][]byte{[]byte("admit 1 a x\n"), []byte("arrive 1 0 0 b general\n"), []byte("admit 2 c y\n")}
	if lost := lostPasses([]string{"a", "b", "c"}, entries); !slices.Equal(lost, []string{"b"}) {
		t.Errorf("%q are lost", lost)
	}
}

// TestPauses: a pause counts from the moment from which pauses are measured.
func TestPauses(t *testing.T) {
	t.Parallel()
	begun := time.Unix(0, 0)
	p := pauses{last: begun}
	for _, s := range []time.Duration{5, 6, 8} {
		p.tick(begun.Add(s * time.Second))
	}
	if p.longest != 5*time.Second {
		t.Errorf("the longest pause is %s", p.longest)
	}
}

// TestBroken: each broken promise is named.
func TestBroken(t *testing.T) {
	t.Parallel()
	kept := row{receipts: 1, claims: 1, checkpoints: 1, paused: 3 * time.Second, database: 2 * time.Second}
	if list := kept.broken(); len(list) > 0 {
		t.Errorf("broken: %q", list)
	}
	for want, change := range map[string]func(r *row){
		"receipts were lost": func(r *row) { r.lost = 1 },
		"another history":    func(r *row) { r.histories = 1 },
		"claims were lost":   func(r *row) { r.lostClaims = 1 },
		"joins paused":       func(r *row) { r.paused += time.Millisecond },
		"the audit exits":    func(r *row) { r.audit = 1 },
		"too little":         func(r *row) { r.claims = 0 },
		"something else":     func(r *row) { r.faults = []string{"something else"} },
	} {
		r := kept
		change(&r)
		if list := r.broken(); len(list) != 1 || !strings.Contains(list[0], want) {
			t.Errorf("want %q, got %q", want, list)
		}
	}
}

// TestParse: names choose drills, and an unknown one is an error.
func TestParse(t *testing.T) {
	t.Parallel()
	_, all, err := parse(nil)
	if err != nil || len(all) != len(drills) {
		t.Errorf("without names: %d drills, %v", len(all), err)
	}
	o, chosen, err := parse([]string{"crash", "-rate", "50", "node"})
	if err != nil || o.rate != 50 || len(chosen) != 2 || chosen[0].name != "crash" || chosen[1].name != "node" {
		t.Errorf("%+v %+v %v", o, chosen, err)
	}
	for _, args := range [][]string{{"nothing"}, {"crash", "nothing"}, {"-rate", "0"}, {"-etcd", "2"}, {"-route", "x"}} {
		if _, _, err := parse(args); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}
