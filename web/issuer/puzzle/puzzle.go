// Package puzzle makes small puzzles for people: words, pictures or tones, of which those that fit have to be ticked.
//
// A puzzle follows from its kind and a seed, so whoever keeps the seed need not keep the puzzle. Without the seed, what
// fits shows only in what a person reads, sees or hears: by length and form, all options are alike. A program that is
// made for these puzzles solves them all the same.
package puzzle

import (
	"crypto/subtle"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strconv"
)

// Kind is a kind of puzzle.
type Kind string

// The kinds. Nobody needs all senses: words need neither sight nor hearing, pictures no hearing, tones no sight.
const (
	Words    Kind = "words"
	Pictures Kind = "pictures"
	Tones    Kind = "tones"
)

// Kinds lists the kinds, the one that most people can solve first.
func Kinds() []Kind { return []Kind{Words, Pictures, Tones} }

// Say returns a text in the visitor's language; values are pairs of a placeholder's name and its value.
type Say func(key string, values ...string) string

// Puzzle is a question and options, of which those that fit have to be ticked.
type Puzzle struct {
	Kind     Kind
	Question string
	Options  []Option
	Sound    []byte // a WAV file; nil: none

	fits Picks
}

// Option is what a visitor may tick.
type Option struct {
	Label   string
	Picture *Picture // nil: none
}

// Picks is a set of options, by their numbers from 0.
type Picks uint16

// Has reports whether an option is in the set.
func (p Picks) Has(option int) bool { return p>>option&1 == 1 }

// Seed determines a puzzle of each kind.
type Seed [32]byte

// maker makes the puzzles of one kind. What fits must be the options of [mark].
type maker interface {
	make(r *rand.Rand, say Say) *Puzzle
}

var makers = map[Kind]maker{Words: words{}, Pictures: pictures{}, Tones: tones{}}

// New returns the puzzle of a seed; of an unknown kind, one with words. The language has no influence on what fits.
func New(kind Kind, seed Seed, say Say) *Puzzle {
	if makers[kind] == nil {
		kind = Words
	}
	r := rand.New(rand.NewChaCha8(seed)) //nolint:gosec // a cipher's stream
	p := makers[kind].make(r, say)
	p.Kind = kind
	return p
}

// IsSolved reports whether the picks are what fits, in constant time.
func (p *Puzzle) IsSolved(picks Picks) bool {
	var got, want [2]byte
	binary.BigEndian.PutUint16(got[:], uint16(picks))
	binary.BigEndian.PutUint16(want[:], uint16(p.fits))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// ParsePicks reads the numbers of ticked options, each at most once.
func (p *Puzzle) ParsePicks(numbers []string) (picks Picks, ok bool) {
	for _, text := range numbers {
		n, err := strconv.ParseUint(text, 10, 8)
		if err != nil || int(n) >= len(p.Options) || strconv.FormatUint(n, 10) != text || picks.Has(int(n)) {
			return 0, false
		}
		picks |= 1 << n
	}
	return picks, true
}

// Between these numbers of options fit.
const (
	fewest = 3
	most   = 5
)

// mark chooses the options that fit, of n.
func mark(r *rand.Rand, n int) (fits Picks) {
	for _, option := range draw(r, n, fewest+r.IntN(most-fewest+1)) {
		fits |= 1 << option
	}
	return fits
}

// draw returns k different numbers below n, in random order.
func draw(r *rand.Rand, n, k int) []int { return slices.Clip(r.Perm(n)[:k]) }

// between returns a random number of a range.
func between(r *rand.Rand, low, high float64) float64 { return low + (high-low)*r.Float64() }
