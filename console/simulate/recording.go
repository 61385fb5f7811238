package simulate

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrArrivals is returned when a text is no recording of arrivals.
var ErrArrivals = errors.New("not a recording of arrivals")

// ReadArrivals reads arrivals as comma-separated values: a time, and how many
// came from then on, 1 where that is missing. A first line with names, "time"
// and "count" among others, says which columns they are. A time is RFC 3339,
// seconds since 1970 (milliseconds from 100,000,000,000 on), or counts from the
// opening: seconds such as 12.5, or a duration such as 1m30s. For moments of a
// calendar the first is the opening. The order does not matter.
func ReadArrivals(r io.Reader) ([]Bucket, error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord, in.Comment, in.TrimLeadingSpace, in.ReuseRecord = -1, '#', true, true
	t := table{count: 1}
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return t.buckets()
		}
		if syntax, ok := errors.AsType[*csv.ParseError](err); ok {
			return nil, fmt.Errorf("%w: line %d: %w", ErrArrivals, syntax.Line, syntax.Err)
		}
		if err != nil {
			return nil, fmt.Errorf("read arrivals: %w", err)
		}
		if err := t.add(record); err != nil {
			line, _ := in.FieldPos(0)
			return nil, fmt.Errorf("%w: line %d: %w", ErrArrivals, line, err)
		}
	}
}

// table is a recording being read.
type table struct {
	time, count int  // columns
	headed      bool // the first line has been seen
	calendar    bool // times are moments, not counted from an opening
	rows        []row
	total       int
}

type row struct {
	at    int64 // milliseconds
	count int
}

func (t *table) add(record []string) error {
	first := !t.headed
	t.headed = true
	if first && t.names(record) {
		return nil
	}
	if len(record) <= t.time {
		return errors.New("has no time")
	}
	at, calendar, err := parseTime(strings.TrimSpace(record[t.time]))
	if err != nil {
		return err
	}
	if len(t.rows) > 0 && calendar != t.calendar {
		return errors.New("mixes moments of a calendar with times since the opening")
	}
	t.calendar = calendar
	count := 1
	if len(record) > t.count {
		text := strings.TrimSpace(record[t.count])
		if count, err = strconv.Atoi(text); err != nil || count < 0 || count > MaxVisitors {
			return fmt.Errorf("%q is no count from 0 to %d", text, MaxVisitors)
		}
	}
	if t.total += count; t.total > MaxVisitors || len(t.rows) == MaxVisitors {
		return fmt.Errorf("there are more than %d arrivals", MaxVisitors)
	}
	t.rows = append(t.rows, row{at, count})
	return nil
}

// names takes a first line that says what the columns are.
func (t *table) names(record []string) bool {
	column := func(name string) int {
		return slices.IndexFunc(record, func(s string) bool {
			return strings.EqualFold(strings.Trim(s, " \ufeff"), name) // spreadsheets begin with a byte order mark
		})
	}
	if column("time") < 0 {
		return false
	}
	t.time, t.count = column("time"), math.MaxInt
	if c := column("count"); c >= 0 {
		t.count = c
	}
	return true
}

// parseTime returns a time in milliseconds, and whether it is one of a
// calendar.
func parseTime(text string) (at int64, calendar bool, err error) {
	if moment, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return moment.UnixMilli(), true, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return d.Milliseconds(), false, nil
	}
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || !(x >= 0 && x < 1<<53):
		return 0, false, fmt.Errorf("%q is no time such as 2030-05-01T12:00:00Z, 12.5 or 1m30s", text)
	case x >= 1e11:
		return int64(x), true, nil
	case x >= 1e9:
		return int64(x * 1000), true, nil
	}
	return int64(math.Round(x * 1000)), false, nil
}

func (t *table) buckets() ([]Bucket, error) {
	if t.total == 0 {
		return nil, fmt.Errorf("%w: there are none", ErrArrivals)
	}
	slices.SortFunc(t.rows, func(a, b row) int { return int(max(-1, min(1, a.at-b.at))) })
	opens := int64(0)
	if t.calendar {
		opens = t.rows[0].at
	}
	var list []Bucket
	last := int64(-1)
	for _, r := range t.rows {
		if r.at-opens > int64(longest.millis()) {
			return nil, fmt.Errorf("%w: they go on for more than 31 days", ErrArrivals)
		}
		if r.at != last {
			list = append(list, Bucket{At: Duration(time.Duration(r.at-opens) * time.Millisecond)})
		}
		list[len(list)-1].Count += r.count
		last = r.at
	}
	return list, nil
}

// total is how many arrivals a recording has, as far as they may be counted.
func total(list []Bucket) (n int) {
	for _, b := range list {
		n = min(n+min(max(b.Count, 0), MaxVisitors), math.MaxInt32)
	}
	return n
}

// Record makes the people of the plan those of a recording, with some bots on
// top.
func (p *Plan) Record(list []Bucket, bots int) {
	p.Arrivals.Shape, p.Arrivals.Buckets = Recorded, list
	p.Visitors, p.Bots.Count = total(list)+bots, bots
}
