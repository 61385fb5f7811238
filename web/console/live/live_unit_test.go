package live

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/format"
)

// TestFigureWords checks the words for figures. The script has the same cases.
func TestFigureWords(t *testing.T) {
	t.Parallel()
	f := func(f float64) *float64 { return &f }
	ms := int64(90_000)
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	joining := func(from, to time.Duration) live.Figures {
		return live.Figures{At: at, Joining: &live.Span{Earliest: at.Add(from), Latest: at.Add(to)}}
	}
	for i, test := range []struct{ got, want string }{
		{format.Decimal(nil), format.Dash}, {format.Decimal(f(0)), "0.0"}, {format.Decimal(f(12.34)), "12.3"}, {format.Decimal(f(99.94)), "99.9"}, {format.Decimal(f(1234.5)), "1,235"},
		{format.Percent(nil), format.Dash}, {format.Percent(f(0.1234)), "12.3 %"}, {format.Percent(f(1)), "100.0 %"},
		{format.Bytes(0), "0 MiB"}, {format.Bytes(5<<30 + 1), "5,120 MiB"},
		{format.Span(int64(0)), "0.0 s"}, {format.Span(&ms), "90 s"}, {format.Span((*int64)(nil)), format.Dash}, {format.Span(f(0.44)), "0.4 s"}, {format.Span((*float64)(nil)), format.Dash}, {format.Span(120.0), "2 min"}, {format.Span(7200.0), "2.0 h"}, {format.Span(100_000.0), "27.8 h"},
		{until(at, at.Add(-1)), "now"}, {until(at, at.Add(42*time.Second)), "0:42"}, {until(at, at.Add(41001*time.Millisecond)), "0:42"}, {until(at, at.Add(725*time.Second)), "12:05"}, {until(at, at.Add(11525*time.Second)), "3:12:05"}, {until(at, at.Add(51*time.Hour)), "2 d 03:00"}, {until(at, (*time.Time)(nil)), format.Dash},
		{emptied(live.Figures{At: at}), "no line"}, {emptied(live.Figures{At: at, Phase: room.PhaseClaimsFrozen, Waiting: 3}), "not while stopped"},
		{emptied(live.Figures{At: at, Phase: room.PhaseServing, Waiting: 3, Next: live.Next{Called: &live.Span{Earliest: at.Add(time.Minute), Latest: at.Add(150 * time.Second)}}}), "in 1 to 3 min"}, {emptied(live.Figures{At: at, Waiting: 3}), format.Dash},
		{turn(live.Figures{}), format.Dash}, {turn(joining(0, 59*time.Second)), "within a minute"}, {turn(joining(0, time.Minute)), "in 0 to 1 min"},
		{turn(joining(150*time.Second, 301*time.Second)), "in 2 to 6 min"}, {turn(joining(59*time.Minute, 61*time.Minute)), "in 55 to 65 min"},
		{turn(joining(359*time.Minute, 361*time.Minute)), "in 345 to 375 min"}, {turn(joining(50*time.Hour, 61*time.Hour)), "in 50 to 61 h"},
	} {
		if test.got != test.want {
			t.Errorf("case %s: %q, want %q", fmt.Sprint(i), test.got, test.want)
		}
	}
}

// TestRestoreWords says what to do when the rules refuse to give a place back at this moment.
func TestRestoreWords(t *testing.T) {
	t.Parallel()
	other := errors.New("other")
	for want, err := range map[string]error{
		"are being drawn": room.ErrDrawing, "no call to spare": &fairness.Violation{Rule: fairness.RuleOutflow},
		"fewer seats are left": &fairness.Violation{Rule: fairness.RuleSeats}, "cannot be given back now": &fairness.Violation{Rule: fairness.RuleRestore},
	} {
		if got := invalid.Problems(restoreWords(err)); len(got) != 1 || got[0].Field != "ticket" || !strings.Contains(got[0].Detail, want) {
			t.Errorf("%v: %+v", err, got)
		}
	}
	if got := restoreWords(other); got != other { //nolint:errorlint // the same error
		t.Errorf("%v became %v", other, got)
	}
}
