package simulate

import (
	"context"
	"slices"
	"time"

	"github.com/proofline/proofline/fairness"
)

// Lengths returns the window lengths to compare, from first come, first served to five minutes.
func Lengths() []Duration {
	return []Duration{
		Duration(fairness.MinWindow) * Duration(time.Millisecond), Duration(time.Second), Duration(10 * time.Second),
		Duration(time.Minute), Duration(5 * time.Minute),
	}
}

// Row is the result of a plan with different windows, or with another door.
type Row struct {
	Label  string   `json:"label"`
	Length Duration `json:"length"`         // length of all windows; 0: windows of the plan
	Door   DoorKind `json:"door,omitempty"` // of [CompareDoors]; empty: the door of the plan
	Result *Result  `json:"result"`
}

// Compare simulates the plan as it is, with windows of each length from the opening on, and with one draw for all
// visitors. The same people arrive each time. Progress, which may be nil, returns the callback for a row. Errors:
// those of [Run].
func Compare(ctx context.Context, p Plan, lengths []Duration,
	progress func(row, rows int, label string) Progress) ([]Row, error) {
	return p.compare(ctx, p.rows(lengths), progress)
}

// CompareDoors simulates the plan with a door of each kind, with the figures of the plan's door. The same people come
// each time. Progress, which may be nil, returns the callback for a row. Errors: those of [Run].
func CompareDoors(ctx context.Context, p Plan, progress func(row, rows int, label string) Progress) ([]Row, error) {
	rows := make([]Row, len(Doors))
	for i, kind := range Doors {
		one := p.Door
		one.Kind = kind
		rows[i] = Row{Label: one.Label(), Door: kind}
	}
	return p.compare(ctx, rows, progress)
}

// with returns the plan with the windows or the door of a row.
func (p *Plan) with(r *Row) Plan {
	one := *p
	if r.Length > 0 {
		one.Room.Windows = []WindowRule{{0, r.Length}}
	}
	if r.Door != "" {
		one.Door.Kind = r.Door
	}
	return one
}

// compare simulates the plan for each row, and fills in the results.
func (p *Plan) compare(ctx context.Context, rows []Row,
	progress func(row, rows int, label string) Progress) ([]Row, error) {
	if err := p.Problems().Err(); err != nil {
		return nil, err
	}
	crowd := newCrowd(p)
	for i := range rows {
		one := p.with(&rows[i])
		if err := one.Problems().Err(); err != nil {
			return nil, err
		}
		var told Progress
		if progress != nil {
			told = progress(i, len(rows), rows[i].Label)
		}
		var err error
		if rows[i].Result, err = run(ctx, &one, slices.Clone(crowd), told, nil); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// rows returns the rows to compare. The plan's own windows are first and are not repeated.
func (p *Plan) rows(lengths []Duration) []Row {
	rows := []Row{{Label: "as planned"}}
	own := Duration(0)
	if w := p.Room.Rules(); len(w) == 1 {
		own = w[0].Length
		rows[0].Label = "as planned (" + own.Words() + ")"
	}
	for _, length := range lengths {
		label := "windows of " + length.Words()
		if length.millis() == fairness.MinWindow {
			label = "first come, first served"
		}
		if length != own {
			rows = append(rows, Row{Label: label, Length: length})
		}
	}
	if one := p.oneDraw(); one != own {
		rows = append(rows, Row{Label: "one draw (" + one.Words() + ")", Length: one})
	}
	return rows
}

// oneDraw returns the length of a window that includes nearly all visitors: it lasts until the start if people
// arrive before that, else until the crowd has arrived.
func (p *Plan) oneDraw() Duration {
	a := &p.Arrivals
	var last Duration
	switch a.Shape {
	case Steady:
		last = a.Over
	case Burst:
		last = 7 * a.HalfLife
	case Early:
		last = p.Room.Starts + 7*a.HalfLife
	case Recorded:
		last = a.Buckets[len(a.Buckets)-1].At
	}
	minute := Duration(time.Minute)
	last = max((last+minute-1)/minute*minute, minute)
	if p.Room.Closes != nil {
		last = min(last, *p.Room.Closes)
	}
	return min(last, Duration(fairness.MaxWindow)*Duration(time.Millisecond))
}
