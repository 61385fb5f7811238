package codesheet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/internal/codesheet"
)

// TestSheet checks what the slips of a sheet have, and that texts stay texts.
func TestSheet(t *testing.T) {
	t.Parallel()
	vienna, err := time.LoadLocation("Europe/Vienna")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC)
	s := codesheet.Sheet{Title: "Presale <b>", Address: "https://queue.example.com/r/sale", Codes: []string{"AAAA-1", "BBBB-2"},
		Opens: codesheet.Opens(now.Add(time.Hour), now, vienna)}
	html, err := s.Page()
	if err != nil {
		t.Fatal(err)
	}
	slips, err := s.Slips()
	if err != nil || !strings.Contains(string(html), string(slips)) {
		t.Errorf("the page has other slips, %v", err)
	}
	for want, n := range map[string]int{
		"<li>Presale &lt;b&gt; <b>AAAA-1</b>": 1, "<b>BBBB-2</b>": 1, "Opens 1 Jul 2026, 13:00 (Europe/Vienna)": 2,
		"<small>https://queue.example.com/r/sale</small>": 2, `<use href="#qr"/>`: 2, `<symbol id="qr"`: 1, "<b>\"": 0,
	} {
		if got := strings.Count(string(html), want); got != n {
			t.Errorf("%q is there %d times, want %d", want, got, n)
		}
	}
	bare := codesheet.Sheet{Title: "Your code", Codes: s.Codes, Opens: codesheet.Opens(now, now, vienna)}
	if html, err = bare.Page(); err != nil || strings.Contains(string(html), "<svg") || strings.Contains(string(html), "<small>") ||
		strings.Contains(string(html), "Opens") || strings.Count(string(html), "<li>Your code <b>") != 2 {
		t.Errorf("%v\n%s", err, html)
	}
	long := codesheet.Sheet{Title: "Your code", Address: "https://example.com/" + strings.Repeat("x", 4000), Codes: s.Codes}
	if html, err = long.Page(); err != nil || strings.Contains(string(html), "<svg") || !strings.Contains(string(html), long.Address) {
		t.Errorf("an address that is too long: %v", err)
	}
	if got := codesheet.Opens(now.Add(time.Second), now, time.UTC); got != "1 Jul 2026, 10:00:01 (UTC)" {
		t.Errorf("opens %q", got)
	}
}
