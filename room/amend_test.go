package room

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/pgroom"
)

// TestAmend changes each field, alone and together.
func TestAmend(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	opens := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	r := create(t, node(t, url, newMaster(t)), Config{Slug: "amend", Opens: &opens, Windows: []WindowRule{{Length: Duration(time.Minute)}}})
	want := r.Config()
	amend := func(a Amendment) {
		t.Helper()
		if err := r.Amend(t.Context(), a); err != nil {
			t.Fatalf("%+v: %v", a, err)
		}
		if diff := cmp.Diff(want, r.Config()); diff != "" {
			t.Errorf("after %+v (-want +got):\n%s", a, diff)
		}
	}
	title, message, closes := "Winter", said("Soon\nÜnïcode"), opens.Add(3*time.Hour)
	want.Title = title
	amend(Amendment{Title: &title})
	if n := count(t, url, r, fairness.KindAmend); n != 0 {
		t.Errorf("a title made %d entries", n)
	}
	want.Outflow = Outflow{PerMinute: 7, MaxActive: 3}
	amend(Amendment{Outflow: &OutflowChange{&want.Outflow.PerMinute, &want.Outflow.MaxActive}})
	want.Closes = &closes
	amend(Amendment{Closes: &closes})
	later := opens.Add(2 * time.Hour)
	want.Windows = append(want.Windows, WindowRule{From: &later, Length: Duration(time.Second)})
	amend(Amendment{Windows: want.Windows[1:]})
	amend(Amendment{Message: message})
	amend(Amendment{Message: message}) // nothing changes, so it is no entry
	now := message.At(r.Now())
	if s := r.Snapshot(); !cmp.Equal(s.Message(r.Now()), &now) || s.Title != title || !s.Closes.Equal(closes) || s.Outflow != fairness.Outflow(want.Outflow) {
		t.Errorf("snapshot %+v", s)
	}
	if got := replay(t, r).InForce().Message; got != sha256.Sum256([]byte(now.Canonical())) {
		t.Errorf("message %x in the transcript", got)
	}
	brief := said("Briefly")
	brief.For = Duration(time.Hour)
	amend(Amendment{Message: brief})
	if s := r.Snapshot(); s.Message(r.Now()) == nil || s.Message(r.Now().Add(time.Hour+time.Second)) != nil {
		t.Errorf("a message of an hour: %+v", s.message)
	}
	earlier := opens.Add(time.Hour)
	want.Title, want.Closes, want.Outflow = "All", &later, Outflow{PerMinute: 1}
	want.Windows[1] = WindowRule{From: &earlier, Length: Duration(time.Hour)}
	amend(Amendment{Title: &want.Title, Message: &MessageChange{}, Outflow: &OutflowChange{&want.Outflow.PerMinute, &want.Outflow.MaxActive}, Windows: want.Windows[1:], Closes: &later})
	if s := r.Snapshot(); s.message != nil || s.Counts.Amends != 8 {
		t.Errorf("message %+v after %d amendments", s.message, s.Counts.Amends)
	}
	auditRoom(t, r)
}

// TestAmendRefused changes several settings at once, one of them to an invalid value: nothing is changed.
func TestAmendRefused(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	rs := node(t, url, newMaster(t))
	r := create(t, rs, Config{
		Slug: "refused", Closes: at(time.Now().Add(3 * time.Hour)), Windows: []WindowRule{{Length: Duration(time.Hour)}},
	})
	before, size := r.Config(), r.Snapshot().Size
	title, message := "Winter", said("Soon")
	good := Amendment{Title: &title, Message: message, Outflow: &OutflowChange{PerMinute: new(uint32(9))}}
	for name, test := range map[string]struct {
		change func(*Amendment)
		field  string
	}{
		"closes in the open window":  {func(a *Amendment) { a.Closes = at(time.Now().Add(time.Minute)) }, "closes"},
		"closes in the past":         {func(a *Amendment) { a.Closes = at(time.Now().Add(-time.Minute)) }, "closes"},
		"windows in the open window": {func(a *Amendment) { a.Windows = []WindowRule{{at(time.Now()), Duration(time.Minute)}} }, "windows[0].from"},
		"windows after the close": {func(a *Amendment) {
			a.Windows = []WindowRule{{at(time.Now().Add(4 * time.Hour)), Duration(time.Minute)}}
		}, "windows[0].from"},
		"windows too short":        {func(a *Amendment) { a.Windows = []WindowRule{{at(time.Now().Add(2 * time.Hour)), Duration(1)}} }, "windows[0].length"},
		"windows without a moment": {func(a *Amendment) { a.Windows = []WindowRule{{nil, Duration(time.Minute)}} }, "windows[0].from"},
		"no outflow":               {func(a *Amendment) { a.Outflow = &OutflowChange{PerMinute: new(uint32)} }, "outflow.per_minute"},
		"no outflow, new windows": {func(a *Amendment) {
			a.Outflow = &OutflowChange{PerMinute: new(uint32)}
			a.Windows = []WindowRule{{at(time.Now().Add(2 * time.Hour)), Duration(time.Minute)}}
		}, "outflow.per_minute"},
		"a long message": {func(a *Amendment) { a.Message = said(strings.Repeat("x", maxMessage+1)) }, "message.texts.en"},
		"a message that is over": {func(a *Amendment) {
			a.Message = said("Soon")
			a.Message.Until = at(time.Now().Add(-time.Second))
		}, "message.until"},
		"a NUL": {func(a *Amendment) { nul := "a\x00"; a.Title = &nul }, "title"},
	} {
		a := good
		test.change(&a)
		err := r.Amend(t.Context(), a)
		if diff := cmp.Diff([]string{test.field}, fieldsOf(t, err)); diff != "" {
			t.Errorf("%s (-want +got) %v:\n%s", name, err, diff)
		}
		if diff := cmp.Diff(before, r.Config()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if n := count(t, url, r, fairness.KindAmend); n != 0 || r.Snapshot().Size != size || r.Snapshot().message != nil {
			t.Errorf("%s: %d amendments are in the transcript", name, n)
		}
	}
	if record, err := rs.Store.Get(t.Context(), r.Slug); err != nil || record.Title != before.Title {
		t.Errorf("stored title %q, %v", record.Title, err)
	}
	auditRoom(t, r)
}

// TestExtend moves the close of a room to a later time while its last window, which the close cuts short, is
// open: that window stays as it was.
func TestExtend(t *testing.T) {
	t.Parallel()
	for name, windows := range map[string]func(time.Time) []WindowRule{
		"same windows":  func(time.Time) []WindowRule { return nil },
		"other windows": func(closes time.Time) []WindowRule { return []WindowRule{{&closes, Duration(time.Second)}} },
		"other windows, later": func(closes time.Time) []WindowRule {
			return []WindowRule{{at(closes.Add(time.Minute)), Duration(time.Second)}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			closes := time.Now().Add(90 * time.Minute).Truncate(time.Millisecond)
			url := pgtest.URL(t)
			r := create(t, node(t, url, newMaster(t)), Config{Slug: "extend", Opens: at(closes.Add(-30 * time.Minute)), Closes: &closes, Windows: []WindowRule{{Length: Duration(time.Hour)}}})
			superuser(t, url, `update log_heads set time_ms = $1`, closes.Add(-time.Minute).UnixMilli())
			later := closes.Add(2 * time.Hour)
			if err := r.Amend(t.Context(), Amendment{Closes: &later, Windows: windows(closes)}); err != nil {
				t.Fatal(err)
			}
			s := r.Snapshot()
			open, ok := s.schedule.At(millis.Of(closes) - 1)
			next, okNext := s.schedule.At(millis.Of(closes))
			if !ok || !okNext || open.To != millis.Of(closes) || next.From != open.To || next.Index != open.Index+1 || !s.Closes.Equal(later) {
				t.Errorf("the open window is %+v, then %+v", open, next)
			}
			auditRoom(t, r)
		})
	}
}

// TestAmendWithSlots: slots cut the first window, so that its end is fixed long before it opens. What comes after it can
// change.
func TestAmendWithSlots(t *testing.T) {
	t.Parallel()
	opens := time.Now().Add(3 * time.Hour).Truncate(time.Millisecond)
	ends, closes := opens.Add(time.Hour), opens.Add(90*time.Minute)
	url := pgtest.URL(t)
	r := create(t, node(t, url, newMaster(t)), Config{Slug: "slots", Opens: &opens, Closes: &closes, Slots: span(15 * time.Minute),
		Windows: []WindowRule{{Length: Duration(time.Hour)}}})
	if c := r.Config(); c.Slots == nil || *c.Slots != Duration(15*time.Minute) {
		t.Errorf("slots of %v", c.Slots)
	}
	for field, a := range map[string]Amendment{
		"windows[0].from": {Windows: []WindowRule{{at(ends.Add(-time.Minute)), Duration(time.Minute)}}},
		"closes":          {Closes: at(ends.Add(-time.Minute))},
	} {
		for _, err := range []error{r.Check(a), r.Amend(t.Context(), a)} {
			if diff := cmp.Diff([]string{field}, fieldsOf(t, err)); diff != "" || !strings.Contains(err.Error(), "a first one with slots") {
				t.Errorf("%s (-want +got) %v:\n%s", field, err, diff)
			}
		}
	}
	later := Amendment{Closes: at(ends), Windows: []WindowRule{{at(ends), Duration(time.Minute)}}}
	if err := r.Amend(t.Context(), later); fieldsOf(t, err)[0] != "windows[0].from" {
		t.Errorf("windows from the close on: %v", err)
	}
	for _, a := range []Amendment{
		{Closes: &ends}, {Closes: at(ends.Add(time.Hour))}, // the first window was the last
		{Windows: []WindowRule{{&ends, Duration(time.Minute)}}},
	} {
		if err := r.Amend(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if w, _ := r.Snapshot().schedule.At(millis.Of(opens)); w.To != millis.Of(ends) {
			t.Errorf("the first window ends at %d after %+v", w.To, a)
		}
	}
	auditRoom(t, r)
}

// TestPauseAndEnd does each operation twice.
func TestPauseAndEnd(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r := create(t, node(t, url, newMaster(t)), Config{Slug: "pause", Windows: []WindowRule{{Length: Duration(100 * time.Millisecond)}}})
	step := func(do func() error, amends int, phase Phase) {
		t.Helper()
		for range 2 {
			if err := do(); err != nil {
				t.Fatal(err)
			}
		}
		if s := r.Snapshot(); s.Phase(r.Now()) != phase || count(t, url, r, fairness.KindAmend) != amends {
			t.Errorf("phase %s after %d amendments, want %s after %d", s.Phase(r.Now()), s.Counts.Amends, phase, amends)
		}
	}
	step(func() error { return r.Resume(t.Context()) }, 0, PhaseServing)
	step(func() error { return r.Pause(t.Context()) }, 1, PhasePaused)
	v := newVisitor(r)
	if _, err := r.Join(t.Context(), v.ticket); err != nil {
		t.Errorf("join in a pause: %v", err)
	}
	eventually(t, "it is drawn in a pause", func() bool { return r.Snapshot().Counts.Drawn == 1 })
	time.Sleep(400 * time.Millisecond)
	if n := r.Snapshot().Counts.Called; n != 0 {
		t.Errorf("%d called in a pause", n)
	}
	step(func() error { return r.Resume(t.Context()) }, 2, PhaseServing)
	eventually(t, "it is called after the pause", func() bool { return r.Snapshot().Counts.Called == 1 })
	step(func() error { return r.End(t.Context()) }, 2, PhaseEnded)
	if n := count(t, url, r, fairness.KindEnd); n != 1 {
		t.Errorf("%d ends", n)
	}
	if _, err := r.Claim(t.Context(), v.ticket, v.secret); !errors.Is(err, ErrExpired) {
		t.Errorf("claim after the end: %v, want ErrExpired", err)
	}
	if _, err := r.Join(t.Context(), newVisitor(r).ticket); !errors.Is(err, ErrClosed) {
		t.Errorf("join after the end: %v, want ErrClosed", err)
	}
	violation := (*fairness.Violation)(nil)
	if err := r.Pause(t.Context()); !errors.As(err, &violation) || violation.Rule != fairness.RuleEnd {
		t.Errorf("pause after the end: %v", err)
	}
	title, message := "Over", said("Over")
	if err := r.Amend(t.Context(), Amendment{Title: &title, Message: message}); len(fieldsOf(t, err)) != 1 || r.Config().Title == title {
		t.Errorf("amend after the end: %v, title %q", err, r.Config().Title)
	}
	if err := r.Amend(t.Context(), Amendment{Title: &title}); err != nil || r.Config().Title != title {
		t.Errorf("a title after the end: %v", err)
	}
	auditRoom(t, r)
}

// TestTitleOfBefore: a title read before a change, which arrives after it, does not undo the change.
func TestTitleOfBefore(t *testing.T) {
	t.Parallel()
	r := create(t, node(t, pgtest.URL(t), newMaster(t)), Config{Slug: "named", Title: "Old"})
	before, title := r.details.Known(), "New"
	if err := r.Amend(t.Context(), Amendment{Title: &title}); err != nil {
		t.Fatal(err)
	}
	for _, stored := range []string{"Old", "Older"} {
		if err := r.details.Take(t.Context(), before, &pgroom.Room{Title: stored}); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.Config().Title; got != title {
		t.Errorf("title %q, want %q", got, title)
	}
	if err := r.details.store.SetTitle(t.Context(), r.ID, "Newest"); err != nil { // as another node would
		t.Fatal(err)
	}
	eventually(t, "the title of another node is shown", func() bool { return r.Snapshot().Title == "Newest" })
}

// said returns a message in English without an end.
func said(words string) *MessageChange {
	return &MessageChange{Message: Message{Texts: map[string]string{"en": words}}}
}

// says reports whether visitors see that text.
func says(r *Room, words string) bool {
	m := r.Snapshot().Message(r.Now())
	return m != nil && m.Texts["en"] == words
}
