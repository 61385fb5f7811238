package fairness

import (
	"slices"
	"sort"
)

// windows holds the windows with arrivals, in order. Only the last of them may be neither frozen nor over.
type windows struct {
	all    []window
	frozen int // all[:frozen] are frozen
	drawn  int // all[:drawn] are drawn
}

// window is the state of one window with arrivals.
type window struct {
	Window
	base  uint32     // number in arrivals of the first arrival
	count uint32     // number of arrivals
	lots  []uint32   // by drum; nil in a plain room, where it would be count
	drums [][]uint32 // arrivals by seq, counted from base, until the draw; nil in a plain room

	alpha  []byte // VRF input of its freeze
	beta   [BetaSize]byte
	frozen Time
	round  uint64
	size   uint64 // size of the tree that ends with the freeze
	root   [HashSize]byte

	drawn EntryIndex // draw entry; 0: not drawn
}

// enter returns the state of a window that takes an arrival, which is the last one or comes after it. base is
// the number of that arrival.
func (l *windows) enter(w Window, base uint32) *window {
	if n := len(l.all); n == 0 || l.all[n-1].Index != w.Index {
		l.all = append(l.all, window{Window: w, base: base})
	}
	return &l.all[len(l.all)-1]
}

// nextSeq returns the seq of the next lot in a drum of a window that takes arrivals.
func (l *windows) nextSeq(w Window, drum int) uint32 {
	n := len(l.all)
	switch {
	case n == 0 || l.all[n-1].Index != w.Index:
		return 0
	case l.all[n-1].lots == nil:
		return l.all[n-1].count
	}
	return l.all[n-1].lots[drum]
}

// lotsOf returns the numbers of lots of one lane of several, by slot.
func (w *window) lotsOf(lane, lanes int) (lots []uint32) {
	all := w.freezes()
	for i := lane; i < len(all); i += lanes {
		lots = append(lots, all[i])
	}
	return lots
}

// put puts so many lots of an arrival into a drum.
func (w *window) put(number uint32, drum, lots int) {
	for range lots {
		w.drums[drum] = append(w.drums[drum], number-w.base)
		w.lots[drum]++
	}
}

// of returns the window of an arrival.
func (l *windows) of(number uint32) *window {
	i := sort.Search(len(l.all), func(i int) bool { return l.all[i].base > number })
	return &l.all[i-1]
}

// awaitsDraw reports whether the window of an arrival is frozen but not drawn.
func (l *windows) awaitsDraw(number uint32) bool {
	if l.drawn == l.frozen {
		return false
	}
	last := &l.all[l.frozen-1]
	return l.all[l.drawn].base <= number && number < last.base+last.count
}

// freezes returns the numbers of lots by drum, as a freeze gives them.
func (w *window) freezes() []uint32 {
	if w.lots == nil {
		return []uint32{w.count}
	}
	return slices.Clone(w.lots)
}
