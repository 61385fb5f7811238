package regression_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/room/regression"
)

// recovered examines the database's room.
func (d *database) recovered() *regression.Recovery {
	d.t.Helper()
	rec, err := regression.Recover(d.t.Context(), d.from, slug)
	if err != nil {
		d.t.Fatal(err)
	}
	return rec
}

// TestRecover examines logs of which different parts were seen.
func TestRecover(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seen, held int // sizes; 0: none
		want       int
	}{
		"nothing known": {0, 0, 0},
		"complete":      {5, 0, 0},
		"seen here":     {8, 0, 8},
		"held":          {0, 7, 7},
		"more held":     {6, 7, 7},
		"more seen":     {8, 7, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t, 5)
			by := ""
			if c.held > 0 {
				by = "server elsewhere"
				if err := d.from.Logs.Hold(t.Context(), d.id, d.mark(c.held), by); err != nil {
					t.Fatal(err)
				}
			}
			if c.seen > 0 {
				d.note(d.mark(c.seen))
			}
			if c.seen > max(5, c.held) {
				by = "this directory's marks"
			}
			rec := d.recovered()
			var had pglog.Mark
			if c.want > 0 {
				had = d.mark(c.want)
			}
			if rec.Has != d.mark(5) || rec.Had != had || rec.By != by || rec.VKey() != d.keys.VKey {
				t.Errorf("has %+v, had %+v, by %q", rec.Has, rec.Had, rec.By)
			}
		})
	}
}

// TestCompare accepts only copies that continue the database and everything that was seen.
func TestCompare(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, 5)
	d.note(d.mark(8))
	if err := d.from.Logs.Hold(t.Context(), d.id, d.mark(6), "server elsewhere"); err != nil {
		t.Fatal(err)
	}
	rec := d.recovered()
	early, late := append([][]byte(nil), d.entries...), append([][]byte(nil), d.entries...)
	early[2], early[3] = early[3], early[2]
	late[6], late[7] = late[7], late[6]
	unlike := append([][]byte(nil), d.entries...)
	unlike[9] = []byte("no entry\n")
	if _, err := rec.Compare(t.Context(), copyOf(unlike)); err == nil {
		t.Error("a copy with something else than entries is accepted")
	}
	for name, c := range map[string]struct {
		entries [][]byte
		want    error
	}{
		"empty":                        {nil, regression.ErrTooShort},
		"as short as the database":     {d.entries[:5], regression.ErrTooShort},
		"shorter than what was held":   {d.entries[:6], regression.ErrTooShort},
		"shorter than what was seen":   {d.entries[:7], regression.ErrTooShort},
		"differs within the database":  {early, regression.ErrOtherHistory},
		"differs from what was seen":   {late[:8], regression.ErrOtherHistory},
		"has what was seen":            {d.entries[:8], nil},
		"has more than what was seen":  {d.entries, nil},
		"other entries after the seen": {append(d.entries[:8:8], d.entries[9]), nil},
	} {
		loss, err := rec.Compare(t.Context(), copyOf(c.entries))
		if !errors.Is(err, c.want) || err != nil && c.want == nil {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if (err == nil || errors.Is(err, regression.ErrTooShort)) && loss.To != uint64(len(c.entries)) {
			t.Errorf("%s: loss %+v", name, loss)
		}
	}
}

// TestContinue stores the entries that the database lacks, byte for byte, and none twice.
func TestContinue(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, 5)
	if err := d.from.Logs.Hold(t.Context(), d.id, d.mark(8), "server elsewhere"); err != nil {
		t.Fatal(err)
	}
	rec, second := d.recovered(), d.recovered()
	loss, err := rec.Compare(t.Context(), copyOf(d.entries))
	if err != nil {
		t.Fatal(err)
	}
	var tickets []fairness.Ticket
	for n := uint64(4); n < arrivals; n++ { // entry 0 is the policy
		tickets = append(tickets, roomtest.Ticket("example.com/r/"+slug, n))
	}
	if diff := cmp.Diff(tickets, loss.Tickets); diff != "" {
		t.Errorf("tickets (-want +got):\n%s", diff)
	}
	if loss.From != 5 || loss.To != published || loss.Kinds[fairness.KindArrive] != 5 || len(loss.Admitted) != 0 {
		t.Errorf("loss %+v", loss)
	}
	if err := rec.Continue(t.Context(), loss); err != nil {
		t.Fatal(err)
	}
	if has, hold := d.state(); has != d.mark(published) || hold.IsHeld() {
		t.Errorf("has %+v, hold %+v", has, hold)
	}
	var stored [][]byte
	err = d.from.Logs.Open(d.id, "", nil).Tail(t.Context(), func(text []byte) error {
		stored = append(stored, bytes.Clone(text))
		return nil
	})
	if diff := cmp.Diff(d.entries, stored); err != nil || diff != "" {
		t.Errorf("stored (-want +got), %v:\n%s", err, diff)
	}
	if err := second.Continue(t.Context(), loss); !errors.Is(err, regression.ErrOtherHistory) {
		t.Errorf("another recovery of the same: %v, want ErrOtherHistory", err)
	}
	if has, _ := d.state(); has != d.mark(published) {
		t.Errorf("after another recovery: %+v", has)
	}
}

// TestOverrule releases the room, and ignores the sizes that a witness claimed.
func TestOverrule(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, 5)
	claim := pglog.Mark{Size: 700, Root: pglog.OtherRoot}
	if err := d.from.Logs.Hold(t.Context(), d.id, claim, regression.WitnessPrefix+"w"); err != nil {
		t.Fatal(err)
	}
	if err := d.recovered().Overrule(t.Context()); err != nil {
		t.Fatal(err)
	}
	if has, hold := d.state(); hold.IsHeld() || hold.Ignore != claim.Size || has != d.mark(5) {
		t.Errorf("has %+v, hold %+v", has, hold)
	}
}

// TestEnd signs a statement of what is lost, and ends the room without touching its log.
func TestEnd(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, 5)
	if _, err := d.recovered().End(t.Context(), "words"); !errors.Is(err, regression.ErrComplete) {
		t.Errorf("end of a complete room: %v, want ErrComplete", err)
	}
	if err := d.from.Logs.Hold(t.Context(), d.id, pglog.Mark{Size: 8}, regression.WitnessPrefix+"w"); err != nil {
		t.Fatal(err)
	}
	const words = "The disk is lost.\n\nTickets are refunded."
	signed, err := d.recovered().End(t.Context(), words)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(d.keys.VKey)
	if err != nil {
		t.Fatal(err)
	}
	n, err := note.Open([]byte(signed), note.VerifierList(verifier))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("proofline.dev/ended-with-loss\nexample.com/r/held\n5 %v\n8 unknown\n%s\n", d.mark(5).Root, words)
	if n.Text != want {
		t.Errorf("statement %q, want %q", n.Text, want)
	}
	has, hold := d.state()
	if hold.Ended != signed || has != d.mark(5) {
		t.Errorf("has %+v, hold %+v", has, hold)
	}
	if open, err := d.records.ListOpen(t.Context()); err != nil || len(open) != 0 {
		t.Errorf("open rooms %+v, %v", open, err)
	}
	if len(d.lost) != 1 || d.lost[0] != "example.com/r/held 5" {
		t.Errorf("recorded in the log of rooms: %q", d.lost)
	}
	rec := d.recovered()
	if rec.Statement != signed || strings.TrimSpace(rec.Words()) != words {
		t.Errorf("words %q", rec.Words())
	}
}
