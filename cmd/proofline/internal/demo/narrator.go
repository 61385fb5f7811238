package demo

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// plainInterval is the time between two status lines when out is not a terminal.
const plainInterval = 4 * time.Second

// Narrator prints lines with the seconds since its start. On a terminal, a status
// line below them changes in place. Safe for concurrent use.
type Narrator struct {
	out   io.Writer
	live  bool
	began time.Time

	mu      sync.Mutex
	status  string    // status line on a terminal
	printed time.Time // when the latest status line was printed elsewhere
}

// NewNarrator returns a narrator. live means that out is a terminal.
func NewNarrator(out io.Writer, live bool) *Narrator {
	return &Narrator{out: out, live: live, began: time.Now(), printed: time.Now()}
}

// Say prints one line with its time.
func (n *Narrator) Say(format string, args ...any) {
	n.Print("%5.1f s  %s\n", time.Since(n.began).Seconds(), fmt.Sprintf(format, args...))
}

// Print writes text as it is.
func (n *Narrator) Print(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.erase()
	_, _ = fmt.Fprintf(n.out, format, args...) // the demo continues without output
	n.draw()
}

// Status changes the status line.
func (n *Narrator) Status(format string, args ...any) {
	text := fmt.Sprintf("%5.1f s  ", time.Since(n.began).Seconds()) + fmt.Sprintf(format, args...)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.live {
		n.erase()
		n.status = text
		n.draw()
	} else if time.Since(n.printed) >= plainInterval {
		n.printed = time.Now()
		_, _ = fmt.Fprintln(n.out, text)
	}
}

// ClearStatus removes the status line.
func (n *Narrator) ClearStatus() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.erase()
	n.status = ""
}

func (n *Narrator) erase() {
	if n.status != "" {
		_, _ = fmt.Fprint(n.out, "\r\x1b[K")
	}
}

func (n *Narrator) draw() {
	if n.status != "" {
		_, _ = fmt.Fprint(n.out, n.status)
	}
}
