package live

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Export is the complete history of a room, for download.
type Export struct {
	Slug    string    `json:"slug"`
	Title   string    `json:"title"`
	At      time.Time `json:"at"`      // time of the export
	Minutes []Minute  `json:"minutes"` // the last 30 days
	Summary *Summary  `json:"summary"` // null: the room has not ended
}

// Export returns the complete history of a room. It returns [ErrComputing] or an error of
// [Live.History].
func (l *Live) Export(ctx context.Context, slug string) (Export, error) {
	record, err := l.record(ctx, slug)
	if err != nil {
		return Export{}, err
	}
	e := Export{Slug: slug, Title: record.Title, At: utc(time.Now())}
	if e.Minutes, err = l.History(ctx, slug, time.Time{}, time.Time{}, time.Minute); err != nil {
		return Export{}, err
	}
	switch s, err := l.Summary(ctx, slug); {
	case err == nil:
		e.Summary = &s
	case !errors.Is(err, ErrNotEnded):
		return Export{}, err
	}
	return e, nil
}

// The tables are CSV (RFC 4180) with a header row and times in RFC 3339, UTC. Texts written by
// people are escaped so that no spreadsheet evaluates them as formulas.

// WriteMinutes writes a history as CSV.
func WriteMinutes(w io.Writer, list []Minute) error {
	t := newTable(w, "at", "arrivals", "drawn", "called", "admitted", "no_shows", "gone", "waiting", "active",
		"peak_arrivals", "per_minute", "max_active", "paused")
	for i := range list {
		m := &list[i]
		t.row(m.At, m.Arrivals, m.Drawn, m.Called, m.Admitted, m.NoShows, m.Gone, m.Waiting, m.Active, m.Peak,
			m.PerMinute, m.MaxActive, m.Paused)
	}
	return t.finish()
}

// WriteWindows writes the windows of a summary as CSV.
func WriteWindows(w io.Writer, list []WindowSummary) error {
	t := newTable(w, "window", "from", "to", "arrivals", "admitted", "no_shows", "left", "revoked",
		"called", "call_p50_s", "call_p90_s", "call_p99_s", "admission_p50_s", "admission_p90_s", "admission_p99_s")
	for i := range list {
		s := &list[i]
		t.row(uint64(s.Index), s.From, s.To, s.Arrivals, s.Admitted, s.NoShows, s.Left, s.Revoked,
			int64(s.ToCall.People), s.ToCall.P50, s.ToCall.P90, s.ToCall.P99, s.ToAdmission.P50, s.ToAdmission.P90,
			s.ToAdmission.P99)
	}
	return t.finish()
}

// WriteSummary writes the totals of a summary as CSV, one per row.
func WriteSummary(w io.Writer, title string, s Summary) error {
	t := newTable(w, "figure", "value")
	for _, row := range [][2]any{
		{"slug", s.Slug}, {"title", title}, {"created", s.Created}, {"opens", s.Opens}, {"starts", s.Starts}, {"ended",
			s.Ended}, {"duration_s", s.Duration},
		{"entries", s.Entries}, {"arrivals", s.Arrivals}, {"drawn", s.Drawn}, {"called", s.Called}, {"admitted",
			s.Admitted}, {"no_shows", s.NoShows}, {"cut_off", s.CutOff},
		{"left", s.Left}, {"revoked", s.Revoked}, {"draws", s.Draws}, {"changes", s.Changes}, {"no_show_rate",
			s.NoShowRate},
		{"peak_at", s.Peak.At}, {"peak_arrivals", s.Peak.Arrivals},
		{"call_p50_s", s.ToCall.P50}, {"call_p90_s", s.ToCall.P90}, {"call_p99_s", s.ToCall.P99}, {"call_most_s",
			s.ToCall.Max},
		{"admission_p50_s", s.ToAdmission.P50}, {"admission_p90_s", s.ToAdmission.P90}, {"admission_p99_s",
			s.ToAdmission.P99}, {"admission_most_s", s.ToAdmission.Max},
	} {
		t.row(row[0], row[1])
	}
	return t.finish()
}

// table writes CSV.
type table struct {
	*csv.Writer
	cells []string
}

func newTable(w io.Writer, header ...string) *table {
	t := &table{Writer: csv.NewWriter(w)}
	t.UseCRLF = true
	_ = t.Write(header) // finish returns the error
	return t
}

func (t *table) row(values ...any) {
	t.cells = t.cells[:0]
	for _, v := range values {
		t.cells = append(t.cells, cell(v))
	}
	_ = t.Write(t.cells) // finish returns the error
}

func (t *table) finish() error {
	t.Flush()
	if err := t.Error(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// cell formats a value as a cell; empty for null and for the zero time.
func cell(v any) string {
	switch v := v.(type) {
	case time.Time:
		if v.IsZero() {
			return ""
		}
		return v.UTC().Format(time.RFC3339Nano)
	case int64:
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case *float64:
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'f', -1, 64)
	case string:
		return harmless(v)
	}
	panic(fmt.Sprintf("no cell for %T", v)) // the callers are in this file
}

// formulas are the characters that begin a formula, in narrow and wide forms.
const formulas = "=+-@|%\uff1d\uff0b\uff0d\uff20"

// harmless puts an apostrophe before a text that a spreadsheet would evaluate as a formula,
// ignoring leading blanks (https://owasp.org/www-community/attacks/CSV_Injection).
func harmless(text string) string {
	first, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(text,
		func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }))
	if strings.ContainsRune(formulas, first) {
		return "'" + text
	}
	return text
}
