package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/proofline/proofline/verifier/numeral"
)

// width is the width of reports in characters.
const width = 80

// terminal is the program's output and its capabilities.
type terminal struct {
	out, err io.Writer
	env      func(string) string
	attached func(io.Writer) bool // whether the writer is a terminal
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// interactive reports whether w is a terminal that supports control sequences.
func (t *terminal) interactive(w io.Writer) bool { return t.attached(w) && t.env("TERM") != "dumb" }

// colour returns a function that colours text with ANSI codes, or leaves it unchanged without a
// terminal or with https://no-color.org.
func (t *terminal) colour() func(code int, s string) string {
	if t.env("NO_COLOR") != "" || !t.interactive(t.out) {
		return func(_ int, s string) string { return s }
	}
	return func(code int, s string) string { return fmt.Sprintf("\x1b[%dm%s\x1b[0m", code, s) }
}

// printError prints why the program ends. Write errors are ignored.
func (t *terminal) printError(e *exit) {
	if e.err == nil {
		return
	}
	_, _ = fmt.Fprintf(t.err, "proofline-verify: %s\n", printable(e.err.Error()))
	_, _ = fmt.Fprintf(t.err, "hint: %s\n", e.hint)
}

func (t *terminal) warn(text string) {
	_, _ = fmt.Fprintf(t.err, "proofline-verify: warning: %s\n", printable(text))
}

// bar is a progress bar. Its show may be called from several goroutines; it draws at most every 100
// milliseconds.
type bar struct {
	w     io.Writer // nil: no bar
	noun  string
	turns chan time.Time // holds the time at which the bar may be drawn next; empty while it is drawn
}

// bar returns a progress bar on standard error, shown only on a terminal.
func (t *terminal) bar(noun string) *bar {
	b := &bar{noun: noun, turns: make(chan time.Time, 1)}
	b.turns <- time.Time{}
	if t.interactive(t.err) {
		b.w = t.err
	}
	return b
}

func (b *bar) show(done, total uint64) {
	if b.w == nil || total == 0 {
		return
	}
	select {
	case next := <-b.turns:
		if now := time.Now(); now.After(next) {
			b.draw(done, total)
			next = now.Add(100 * time.Millisecond)
		}
		b.turns <- next
	default:
	}
}

func (b *bar) draw(done, total uint64) {
	const cells = 30
	full := int(float64(done) / float64(total) * cells)
	_, _ = fmt.Fprintf(b.w, "\r\x1b[K[%s%s] %s of %s %s", strings.Repeat("#", full), strings.Repeat(".", cells-full),
		numeral.Group(done), numeral.Group(total), b.noun)
}

// clear removes the bar.
func (b *bar) clear() {
	if b.w != nil {
		_, _ = fmt.Fprint(b.w, "\r\x1b[K")
	}
}

// printable replaces control characters, because the texts come from servers that are not trusted.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// wrapped breaks a text into lines that fit after an indent; a word that is longer than a line gets
// its own line.
func wrapped(text string, indent int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case indent+len([]rune(line))+1+len([]rune(word)) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}
