package findings

import (
	"fmt"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier/numeral"
)

// between counts what was written after the outcome of a draw could be known, and before it was published.
type between struct {
	known    fairness.Time // when the next draw's outcome could be known; 0: no window is frozen and not drawn
	window   fairness.WindowIndex
	frozen   []fairness.WindowIndex // windows that are frozen and not drawn, in the order of their draws
	left     uint64                 // visitors who left
	restored uint64                 // tickets that got their place back
	amends   uint64
	others   uint64 // other entries, such as arrivals; they are counted, and not listed
}

// noteBetween notes an entry that came between the outcome of a draw and its publication; the state is
// the one after it.
func (f *Finder) noteBetween(s *fairness.State, e fairness.Entry) {
	b := &f.between
	if b.known == 0 || s.Now() < b.known {
		return
	}
	what := ""
	switch e := e.(type) {
	case *fairness.Draw, *fairness.End:
		return
	case *fairness.Skip:
		switch {
		case e.Reason.IsRevoked():
			what = "A ticket of window " + windowOf(s, e.Ticket) + " was taken away (" + string(e.Reason) + ")"
		case e.Reason == fairness.Left:
			b.left++
			what = "A ticket of window " + windowOf(s, e.Ticket) + " left"
		}
	case *fairness.Restore:
		b.restored++
		what = "A ticket of window " + windowOf(s, e.Ticket) + " got its place back"
	case *fairness.Amend:
		b.amends++
		what = "A change by the operator (" + string(e.Change) + ")"
	}
	if what == "" {
		b.others++
		return
	}
	f.add(Between, s, "", fmt.Sprintf("%s, %s after the outcome of window %s could be known.", what,
		span(fairness.Millis(s.Now()-b.known)), number(b.window)), 0)
}

// expect finds the next draw whose outcome can be known, after a freeze or a draw.
func (b *between) expect(windows map[fairness.WindowIndex]*window) {
	b.known = 0
	for len(b.frozen) > 0 && windows[b.frozen[0]] == nil { // drawn
		b.frozen = b.frozen[1:]
	}
	if len(b.frozen) > 0 {
		b.window = b.frozen[0]
		b.known = windows[b.window].known
	}
}

// words describes what came between the outcome of a draw and its publication.
func (b *between) words(of *Finding) string {
	kinds, revoked := "", of.Count-b.left-b.restored-b.amends
	for _, k := range []struct {
		n         uint64
		one, many string
	}{
		{b.left, "ticket that left", "tickets that left"}, {revoked, "ticket taken away", "tickets taken away"},
		{b.restored, "ticket restored", "tickets restored"},
		{b.amends, "change by the operator", "changes by the operator"},
	} {
		if k.n > 0 && kinds != "" {
			kinds += ", "
		}
		if k.n > 0 {
			kinds += numeral.Count(k.n, k.one, k.many)
		}
	}
	if b.others > 0 {
		kinds += "; and " + numeral.Count(b.others, "other entry", "other entries") +
			", such as arrivals, calls and admissions"
	}
	return fmt.Sprintf("%s written after the operator could know the outcome of a draw and before it was published: "+
		"%s. None of it changes a place, and no ticket of a closed group can be taken away before its draw; the record "+
		"does not show who knew the outcome in advance.", numeral.Count(of.Count, "entry was", "entries were"), kinds)
}
