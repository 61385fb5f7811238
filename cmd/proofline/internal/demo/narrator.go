package demo

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// plainEvery is how often the figures are told where no line can change.
const plainEvery = 4 * time.Second

// Narrator tells the story line by line, each with the seconds since the
// beginning. On a terminal one line below shows figures as they change. Safe
// for concurrent use.
type Narrator struct {
	out   io.Writer
	live  bool
	began time.Time

	mu     sync.Mutex
	figure string    // on the changing line
	told   time.Time // of the latest plain line with figures
}

// NewNarrator returns a narrator; live says that out is a terminal.
func NewNarrator(out io.Writer, live bool) *Narrator {
	return &Narrator{out: out, live: live, began: time.Now(), told: time.Now()}
}

// Say tells one line.
func (n *Narrator) Say(format string, args ...any) {
	n.Print("%5.1f s  %s\n", time.Since(n.began).Seconds(), fmt.Sprintf(format, args...))
}

// Print writes text as it is.
func (n *Narrator) Print(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.erase()
	_, _ = fmt.Fprintf(n.out, format, args...) // a narrator without listeners
	n.draw()
}

// Figures changes the line below.
func (n *Narrator) Figures(format string, args ...any) {
	text := fmt.Sprintf("%5.1f s  ", time.Since(n.began).Seconds()) + fmt.Sprintf(format, args...)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.live {
		n.erase()
		n.figure = text
		n.draw()
	} else if time.Since(n.told) >= plainEvery {
		n.told = time.Now()
		_, _ = fmt.Fprintln(n.out, text)
	}
}

// EndFigures removes the line below.
func (n *Narrator) EndFigures() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.erase()
	n.figure = ""
}

func (n *Narrator) erase() {
	if n.figure != "" {
		_, _ = fmt.Fprint(n.out, "\r\x1b[K")
	}
}

func (n *Narrator) draw() {
	if n.figure != "" {
		_, _ = fmt.Fprint(n.out, n.figure)
	}
}
