package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/counted"
	"github.com/proofline/proofline/verifier/findings"
	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/verifier/report"
)

// Maximum numbers of cases printed per finding; the page and JSON list more.
const (
	maxCases   = 5
	maxChanges = 20
)

// auditJSON is the output of audit --json.
type auditJSON struct {
	*verifier.Report
	Findings []findings.Finding `json:"findings"`
	Issued   []counted.Method   `json:"issued,omitempty"`
}

func jsonOf(a *report.Audit) auditJSON { return auditJSON{a.Report, a.Findings, a.Issued} }

// printGate prints at the top for how long visitors were admitted past the line.
func printGate(b *strings.Builder, list []findings.Finding, colour func(int, string) string) {
	for _, id := range []findings.ID{findings.Gate, findings.FailOpen} {
		if f := findings.Of(list, id); f != nil {
			printItem(b, "  gate     ", f.Title+". "+f.Text, func(s string) string { return colour(yellow, s) })
		}
	}
}

// printFindings prints events that the rules allow but a reader should know about.
func printFindings(b *strings.Builder, list []findings.Finding) {
	if len(list) == 0 {
		return
	}
	plain := func(s string) string { return s }
	b.WriteString("\nWorth knowing\n")
	for _, f := range list {
		printItem(b, "   - ", f.Title+". "+f.Text, plain)
		most := maxCases
		if f.ID == findings.Amendments {
			most = maxChanges
		}
		for _, item := range f.Items[:min(len(f.Items), most)] {
			if f.Count == 1 && strings.HasPrefix(f.Text, item.Text) {
				break // the text already says so
			}
			at := time.UnixMilli(int64(item.Time)).UTC().Format("2006-01-02 15:04:05.999 UTC")
			printItem(b, "     ", at+": "+item.Text, plain)
		}
		if more := f.Count - uint64(min(len(f.Items), most)); more > 0 {
			fmt.Fprintf(b, "     and %s more: --html FILE lists them\n", numeral.Group(more))
		}
	}
}
