package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/numeral"
)

// Door says in sentences what a join needed in each lane, how many tickets showed what, and on whose word that rests;
// none for a room without methods, or if a check failed: then none of them is sure.
func Door(r *verifier.Report) (lines []string) {
	if len(r.Methods) == 0 || !r.OK {
		return nil
	}
	for _, l := range r.Lanes {
		needs := "nothing"
		if len(l.Needs) > 0 {
			needs = strings.Join(l.Needs, ", ")
		}
		lines = append(lines, fmt.Sprintf("To join the lane %s, a ticket had to show: %s.", l.Name, needs))
	}
	for _, m := range r.Methods {
		lines = append(lines, fmt.Sprintf("%s was shown by %s: %s", m.Name,
			numeral.Count(uint64(m.Shown), "ticket", "tickets"), wordOf(m)))
	}
	if slices.ContainsFunc(r.Methods, func(m verifier.Method) bool { return m.Kind == credential.Signed }) {
		lines = append(lines, "No nullifier was used twice, not even after its ticket had left.")
	}
	if slices.ContainsFunc(r.Methods, func(m verifier.Method) bool { return m.Kind != credential.Work }) {
		lines = append(lines, "An issuer that signs for accounts that do not exist, or another holder of its key, leaves no trace here.",
			"Whether an issuer belongs to the room's operator cannot be seen here. If it does, the operator can vouch for "+
				"anybody: ask the issuer whether the key is its own.")
	}
	return lines
}

// wordOf says on whose word a method rests.
func wordOf(m verifier.Method) string {
	limit := ""
	if m.Limit > 0 {
		limit = fmt.Sprintf(" At most %s could.", numeral.Group(uint64(m.Limit)))
	}
	switch m.Kind {
	case credential.Work:
		return fmt.Sprintf("work of %d bits for a round that the beacon published after the room had opened. That the work was not done before is the beacon's word. It shows computing time, not people.", m.Bits)
	case credential.Signed:
		return fmt.Sprintf("the word of the issuer with the key %s, which vouches for an account and knows which ticket it has. That an account has only one nullifier is its word, too.%s", m.Key, limit)
	case credential.Blind:
		return fmt.Sprintf("the word of the issuer with the key %.16s…, which vouches for an account and cannot know its ticket. That it signed once for each account is its word, too.%s", m.Key, limit)
	}
	return ""
}
