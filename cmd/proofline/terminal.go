package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"
)

// terminal has the program's streams and environment.
type terminal struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string
}

// interactive reports whether a stream is a terminal.
func (t *terminal) interactive(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && t.env("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

func (t *terminal) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(t.out, format, args...)
	return err
}

func (t *terminal) printJSON(v any) error {
	e := json.NewEncoder(t.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printTable prints rows in aligned columns.
func (t *terminal) printTable(rows ...[]string) error {
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = printable(cell)
		}
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t")) // Flush returns the error
	}
	return w.Flush()
}

// printable replaces control characters, which a terminal might obey.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// warn prints a warning.
func (t *terminal) warn(text string) {
	_, _ = fmt.Fprintf(t.err, "proofline: warning: %s\n", text)
}

// note prints additional information to standard error.
func (t *terminal) note(text string) {
	_, _ = fmt.Fprintln(t.err, printable(text))
}

// live is a line on standard error that changes in place. It is only shown on a
// terminal.
type live struct{ w io.Writer }

func (t *terminal) live() live {
	if t.interactive(t.err) {
		return live{t.err}
	}
	return live{io.Discard}
}

func (l live) show(format string, args ...any) {
	_, _ = fmt.Fprintf(l.w, "\r\x1b[K"+format, args...)
}

func (l live) clear() { l.show("") }
