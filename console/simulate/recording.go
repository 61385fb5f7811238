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

// ErrArrivals means that a text is not a recording of arrivals.
var ErrArrivals = errors.New("not a recording of arrivals")

// ReadArrivals reads arrivals from comma-separated values: a time, and the number of arrivals from
// then on, 1 if it is missing. A header line with the names "time" and "count", among others, selects
// the columns. A time is RFC 3339, or seconds since 1970 (milliseconds from 100,000,000,000 on), or
// relative to the opening: seconds such as 12.5, or a duration such as 1m30s. With absolute times the
// first arrival is the opening. Lines can be in any order.
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

// table is a recording that is being read.
type table struct {
	time, count int  // column numbers
	headed      bool // whether the first line has been read
	calendar    bool // whether times are absolute rather than relative to the opening
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
		return errors.New("mixes absolute times with times since the opening")
	}
	t.calendar = calendar
	count := 1
	if len(record) > t.count {
		text := strings.TrimSpace(record[t.count])
		if count, err = strconv.Atoi(text); err != nil || count < 0 || count > MaxVisitors {
			return fmt.Errorf("%q is not a count from 0 to %d", text, MaxVisitors)
		}
	}
	if t.total += count; t.total > MaxVisitors || len(t.rows) == MaxVisitors {
		return fmt.Errorf("there are more than %d arrivals", MaxVisitors)
	}
	t.rows = append(t.rows, row{at, count})
	return nil
}

// names reports whether a first line is a header, and sets the columns if so.
func (t *table) names(record []string) bool {
	column := func(name string) int {
		return slices.IndexFunc(record, func(s string) bool {
			return strings.EqualFold(strings.Trim(s, " \ufeff"), name) // spreadsheets start with a byte order mark
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

// parseTime returns a time in milliseconds, and whether it is absolute.
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
		return 0, false, fmt.Errorf("%q is not a time such as 2030-05-01T12:00:00Z, 12.5 or 1m30s", text)
	case x >= 1e11:
		return int64(x), true, nil
	case x >= 1e9:
		return int64(x * 1000), true, nil
	}
	return int64(math.Round(x * 1000)), false, nil
}

func (t *table) buckets() ([]Bucket, error) {
	if t.total == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrArrivals)
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
			return nil, fmt.Errorf("%w: it lasts more than 31 days", ErrArrivals)
		}
		if r.at != last {
			list = append(list, Bucket{At: Duration(time.Duration(r.at-opens) * time.Millisecond)})
		}
		list[len(list)-1].Count += r.count
		last = r.at
	}
	return list, nil
}

// total returns the number of arrivals of a recording, limited so that it cannot overflow.
func total(list []Bucket) (n int) {
	for _, b := range list {
		n = min(n+min(max(b.Count, 0), MaxVisitors), math.MaxInt32)
	}
	return n
}

// Record replaces the people of the plan with those of a recording, and adds bots.
func (p *Plan) Record(list []Bucket, bots int) {
	p.Arrivals.Shape, p.Arrivals.Buckets = Recorded, list
	p.Visitors, p.Bots.Count = total(list)+bots, bots
}
