// Package report writes the report of an audit as one page that a journalist
// can read, quote and print: HTML without scripts, with its style and charts
// inside, that asks nobody for anything.
//
//	src ─► Record ─► verifier.Audit ─► Report ─┐
//	          └────► Story ────────────────────┴─► Write ─► page
//
// Nothing a transcript says gets into the page unescaped, and no transcript
// makes it longer than [MaxSize]. The package has no clock.
package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/findings"
	"github.com/proofline/proofline/verifier/stats"
)

// MaxSize is the longest page in bytes.
const MaxSize = 1_500_000

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// Audit is what the page is about.
type Audit struct {
	Report     *verifier.Report
	Story      *Story
	Findings   []findings.Finding // what the rules allow and a reader should know
	Statistics *stats.Result      // nil for none
	Trust      verifier.Trust     // as the audit was given it
	Checkpoint []byte             // that was audited, verbatim
	Title      string             // of the event, as the publisher of the report names it; empty: not known
	Organizer  string             // the same of its organizer
	Zone       *time.Location     // of the event; nil for UTC
	Source     string             // where the transcript was read from: URL, directory or archive
	Command    string             // that makes the same audit again
	Program    string             // name and version
	Time       time.Time          // of the audit
}

// Write writes the page.
func Write(w io.Writer, a *Audit) error {
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, newPage(a)); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// address returns where an entry is published, in its bundle; empty if that is not known.
func (p *page) address(index uint64) string {
	if p.base == "" || index >= p.Report.Entries {
		return ""
	}
	t := audit.Tile{Level: -1, Index: index / audit.TileWidth}
	t.Width = int(min(audit.TileWidth, p.Report.Entries-t.Index*audit.TileWidth))
	return p.base + "/" + t.Path()
}
