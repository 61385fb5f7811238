// Package report writes the report of an audit as one page that a journalist can read, quote and
// print: HTML without scripts, with embedded styles and charts, that makes no requests.
//
//	src ─► Record ─► verifier.Audit ─► Report ─┐
//	          └────► Story ────────────────────┴─► Write ─► page
//
// All text from the transcript is escaped, and no transcript makes the page longer than [MaxSize].
// The package has no clock.
package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/counted"
	"github.com/proofline/proofline/verifier/findings"
	"github.com/proofline/proofline/verifier/stats"
)

// MaxSize is the maximum size of a page in bytes.
const MaxSize = 1_500_000

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// Audit is the content of the page.
type Audit struct {
	Report     *verifier.Report
	Story      *Story
	Findings   []findings.Finding // events that the rules allow but a reader should know about
	Issued     []counted.Method   // what issuers count, for the methods that were compared
	Statistics *stats.Result      // nil: none
	Entry      [sha256.Size]byte  // SHA-256 of the room entry
	Trust      verifier.Trust     // trust as given to the audit
	Checkpoint []byte             // audited checkpoint, verbatim
	Title      string             // title of the event, given by the publisher of the report; "": unknown
	Organizer  string             // the event's organizer, also given by the publisher; "": unknown
	Zone       *time.Location     // time zone of the event; nil: UTC
	Source     string             // source of the transcript: URL, directory or archive
	Command    string             // command line that repeats the audit
	Program    string             // name and version
	Time       time.Time          // time of the audit
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
