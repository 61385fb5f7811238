package watch

import (
	"strings"
	"testing"

	"github.com/proofline/proofline/fairness"
)

// TestAmendedCounts: one amendment is not reported several times.
func TestAmendedCounts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		entry fairness.Amend
		want  string
	}{
		{fairness.Amend{Change: fairness.ChangeWindows, Windows: make([]fairness.WindowRule, 1)}, ", 1 rule"},
		{fairness.Amend{Change: fairness.ChangeWindows, Windows: make([]fairness.WindowRule, 2)}, ", 2 rules"},
	} {
		if got := amended(&tt.entry); !strings.HasSuffix(got, tt.want) {
			t.Errorf("%q does not end with %q", got, tt.want)
		}
	}
}

func TestTold(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		entry fairness.Tell
		want  string
	}{
		{fairness.Tell{Subject: fairness.TellUnguarded, Count: 1}, "fail-open: from 00:00:00 UTC to 00:00:00 UTC the site could not reach the room, and admitted 1 request without a pass"},
		{fairness.Tell{Subject: fairness.TellUnguarded, Count: 2}, "fail-open: from 00:00:00 UTC to 00:00:00 UTC the site could not reach the room, and admitted 2 requests without a pass"},
		{fairness.Tell{Subject: fairness.TellStock, Name: "stalls", Count: 12}, "12 of stalls are left"},
		{fairness.Tell{Subject: fairness.TellPrice, Name: "stalls", Min: 4500, Max: 9000, Currency: "EUR"}, "stalls cost 4500 to 9000 minor units of EUR"},
		{fairness.Tell{Subject: fairness.TellRefused, Name: "rate", From: 1000, Until: 61_000, Count: 7}, "7 joins refused (rate) from 00:00:01 UTC to 00:01:01 UTC"},
		{fairness.Tell{Subject: fairness.TellAuto, Name: "slow-site"}, "a program changes the outflow next (slow-site)"},
	} {
		if got := told(&tt.entry); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
