package report

import (
	"strings"
	"testing"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/verifier"
)

// TestDoor: the sentences say on whose word each method rests, and claim nothing if a check failed.
func TestDoor(t *testing.T) {
	t.Parallel()
	r := &verifier.Report{
		OK: true, Lanes: []verifier.Lane{{Name: "general"}, {Name: "members", Needs: []string{"club", "task"}}},
		Methods: []verifier.Method{
			{Method: credential.Method{Name: "club", Kind: credential.Signed, Key: "0a", Limit: 5000}, Shown: 1234},
			{Method: credential.Method{Name: "task", Kind: credential.Work, Bits: 20}, Shown: 1},
			{Method: credential.Method{Name: "phone", Kind: credential.Blind, Key: strings.Repeat("0b", 256)}},
		},
	}
	const leak = "leaves no trace here"
	text := strings.Join(Door(r), "\n")
	for _, want := range []string{
		"lane general, a ticket had to show: nothing", "lane members, a ticket had to show: club, task",
		"club was shown by 1,234 tickets: the word of the issuer with the key 0a,", "At most 5,000 could.",
		"task was shown by 1 ticket: work of 20 bits", "is the beacon's word", "phone was shown by 0 tickets",
		"signed once for each account is its word", "No nullifier was used twice", leak,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not say %q:\n%s", want, text)
		}
	}
	r.Methods = r.Methods[1:2]
	if text := strings.Join(Door(r), "\n"); strings.Contains(text, "ullifier") || strings.Contains(text, leak) {
		t.Errorf("work has neither nullifiers nor an issuer:\n%s", text)
	}
	if r.OK = false; Door(r) != nil {
		t.Errorf("a failed report says %q", Door(r))
	}
	if none := Door(&verifier.Report{OK: true}); none != nil {
		t.Errorf("a room without methods: %q", none)
	}
}
