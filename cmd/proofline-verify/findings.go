package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/findings"
	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/verifier/report"
)

// Cases that are printed of a finding; a page and JSON list more.
const (
	mostCases   = 5
	mostChanges = 20
)

// auditJSON is what --json prints of an audit.
type auditJSON struct {
	*verifier.Report
	Findings []findings.Finding `json:"findings"`
}

func jsonOf(a *report.Audit) auditJSON { return auditJSON{a.Report, a.Findings} }

// printGate prints on top for how long people went in past the line.
func printGate(b *strings.Builder, list []findings.Finding, colour func(int, string) string) {
	for _, id := range []findings.ID{findings.Gate, findings.Unguarded} {
		if f := findings.Of(list, id); f != nil {
			printItem(b, "  gate     ", f.Title+". "+f.Text, func(s string) string { return colour(yellow, s) })
		}
	}
}

// printFindings prints what the rules allow and a reader should know.
func printFindings(b *strings.Builder, list []findings.Finding) {
	if len(list) == 0 {
		return
	}
	plain := func(s string) string { return s }
	b.WriteString("\nWorth knowing\n")
	for _, f := range list {
		printItem(b, "   - ", f.Title+". "+f.Text, plain)
		most := mostCases
		if f.ID == findings.Amendments {
			most = mostChanges
		}
		for _, item := range f.Items[:min(len(f.Items), most)] {
			if f.Count == 1 && strings.HasPrefix(f.Text, item.Text) {
				break // it says so already
			}
			at := time.UnixMilli(int64(item.Time)).UTC().Format("2006-01-02 15:04:05.999 UTC")
			printItem(b, "     ", at+": "+item.Text, plain)
		}
		if more := f.Count - uint64(min(len(f.Items), most)); more > 0 {
			fmt.Fprintf(b, "     and %s more: --html FILE lists them\n", numeral.Group(more))
		}
	}
}
