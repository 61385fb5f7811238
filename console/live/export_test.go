package live

import (
	"bytes"
	"encoding/csv"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 500_000_000, time.UTC)

func seconds(f float64) *float64 { return &f }

// TestTables writes each table and reads it with another CSV reader: all rows have the header's
// cells, lines end as in RFC 4180, and the values are unchanged.
func TestTables(t *testing.T) {
	t.Parallel()
	var minutes, windows, summary bytes.Buffer
	s := Summary{Slug: "sale", Ended: noon, Arrivals: 1 << 40, NoShowRate: seconds(0.25),
		ToCall: Percentiles{People: 3, P50: seconds(1.5)}}
	w := WindowSummary{Index: 7, From: noon, To: noon.Add(time.Minute), Arrivals: 9,
		ToCall: Percentiles{P50: seconds(3600)}}
	err := errors.Join(
		WriteMinutes(&minutes, []Minute{{At: noon, Arrivals: 5, Paused: true},
			{At: noon.Add(time.Minute), MaxActive: 1 << 40}}),
		WriteWindows(&windows, []WindowSummary{w}),
		WriteSummary(&summary, "=HYPERLINK(\"http://evil\",\"a, b\")\nx", s),
	)
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string][][]string{}
	for name, text := range map[string]string{"minutes": minutes.String(), "windows": windows.String(),
		"summary": summary.String()} {
		if !strings.HasSuffix(text, "\r\n") {
			t.Errorf("%s ends with %q", name, text[len(text)-5:])
		}
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		tables[name] = rows
	}
	if got := tables["minutes"]; len(got) != 3 || got[1][0] != "2026-05-01T12:00:00.5Z" || got[1][1] != "5" ||
		got[1][12] != "true" || got[2][11] != strconv.Itoa(1<<40) {
		t.Errorf("minutes %q", got)
	}
	if got := tables["windows"]; len(got) != 2 || got[1][0] != "7" || got[1][9] != "3600" || got[1][10] != "" ||
		got[1][3] != "9" {
		t.Errorf("windows %q", got)
	}
	title := slices.IndexFunc(tables["summary"], func(row []string) bool { return row[0] == "title" })
	if got := tables["summary"][title][1]; got != "'=HYPERLINK(\"http://evil\",\"a, b\")\nx" {
		t.Errorf("title %q", got)
	}
	var failing failingWriter
	if err := WriteWindows(failing, []WindowSummary{w}); !errors.Is(err, errFull) {
		t.Errorf("with a failing writer: %v", err)
	}
}

var errFull = errors.New("full")

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errFull }

// FuzzHarmless checks that no escaped text is a formula and that no text is lost.
func FuzzHarmless(f *testing.F) {
	for _, text := range []string{"", "Sale", "=1+1", " =1", "\t=1", "\x00=1", "\u00a0@a", "\uff1d1", "-5", "'=1",
		"\xff=1", "a=1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := harmless(text)
		if strings.TrimPrefix(got, "'") != strings.TrimPrefix(text, "'") {
			t.Fatalf("%q became %q", text, got)
		}
		for _, r := range got {
			if unicode.IsSpace(r) || unicode.IsControl(r) {
				continue
			}
			if strings.ContainsRune("=+-@|%", r) {
				t.Fatalf("%q is a formula", got)
			}
			break
		}
	})
}
