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
		{fairness.Amend{Change: fairness.ChangeUnguarded, Requests: 1}, "admitted 1 request without a pass"},
		{fairness.Amend{Change: fairness.ChangeUnguarded, Requests: 2}, "admitted 2 requests without a pass"},
	} {
		if got := amended(&tt.entry); !strings.HasSuffix(got, tt.want) {
			t.Errorf("%q does not end with %q", got, tt.want)
		}
	}
}
