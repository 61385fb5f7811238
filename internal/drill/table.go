package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// document has the table of the latest run with -update.
const document = "docs/operate/DRILLS.md"

// row is what became of a drill.
type row struct {
	drill            drill
	receipts, lost   int
	checkpoints      int // sizes of the log that were seen with a signature
	histories        int // checkpoints of another history
	paused, database time.Duration
	repair           time.Duration
	claims           int
	lostClaims       int
	failed           int
	audit            int
	notes, faults    []string
}

// allowed returns how long joins may pause: as long as the database itself, and a second; also as long
// as a person's commands took, and what the drill says.
func (r *row) allowed() time.Duration { return r.database + time.Second + r.repair + r.drill.extra }

// broken returns the promises that were broken.
func (r *row) broken() (list []string) {
	if r.lost > 0 {
		list = append(list, fmt.Sprintf("%d receipts were lost", r.lost))
	}
	if r.histories > 0 {
		list = append(list, fmt.Sprintf("%d signed checkpoints are of another history", r.histories))
	}
	if r.lostClaims > 0 {
		list = append(list, fmt.Sprintf("%d claims were lost", r.lostClaims))
	}
	if r.paused > r.allowed() {
		list = append(list, fmt.Sprintf("joins paused for %s, %s were allowed", short(r.paused), short(r.allowed())))
	}
	if r.audit != 0 {
		list = append(list, fmt.Sprintf("the audit exits with %d", r.audit))
	}
	if r.receipts == 0 || r.claims == 0 || r.checkpoints == 0 {
		list = append(list, "too little happened: no receipt, no claim or no checkpoint")
	}
	return append(list, r.faults...)
}

func short(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func (r *row) columns() []string {
	verdict := "kept"
	if len(r.broken()) > 0 {
		verdict = "BROKEN"
	}
	n := strconv.Itoa
	return []string{
		r.drill.name, n(r.receipts), n(r.lost), n(r.histories), short(r.paused), short(r.database), short(r.allowed()),
		n(r.claims), n(r.lostClaims), n(r.audit), verdict,
	}
}

var head = []string{"drill", "receipts", "lost", "second histories", "joins paused", "database paused", "allowed",
	"claims", "lost", "audit", "promises"}

// summary returns the row on some lines, with notes and broken promises.
func (r *row) summary() string {
	var b strings.Builder
	for i, text := range r.columns() {
		fmt.Fprintf(&b, "%s %s; ", head[i], text)
	}
	fmt.Fprintf(&b, "%d requests failed and were repeated", r.failed)
	for _, note := range r.notes {
		fmt.Fprintf(&b, "\n           %s", note)
	}
	for _, text := range r.broken() {
		fmt.Fprintf(&b, "\n           BROKEN: %s", text)
	}
	return b.String()
}

func printTable(out io.Writer, rows []row) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(head, "\t"))
	for _, r := range rows {
		fmt.Fprintln(w, strings.Join(r.columns(), "\t"))
	}
	_ = w.Flush() // it writes to standard output
}

// Marks of the part of the document that is generated.
const (
	begin = "<!-- table -->\n"
	end   = "<!-- end -->\n"
)

// updateDocument replaces the table of the document.
func updateDocument(o options, rows []row) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, isWhole := strings.Cut(rest, end)
	if !ok || !isWhole {
		return fmt.Errorf("%s lacks the lines %q and %q", document, begin, end)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%.0f joins per second on %d cores, nodes reach the primary by way of %s.\n\n", o.rate,
		runtime.NumCPU(), map[string]string{"haproxy": "HAProxy", "hosts": "all hosts in the URL"}[o.route])
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(r.columns(), " | "))
	}
	for _, r := range rows {
		for i, note := range r.notes {
			if i == 0 {
				fmt.Fprintf(&b, "\n`%s`:\n\n", r.drill.name)
			}
			fmt.Fprintf(&b, "- %s\n", note)
		}
	}
	return os.WriteFile(document, []byte(before+begin+"\n"+b.String()+"\n"+end+after), 0o644) //nolint:gosec // a document
}
