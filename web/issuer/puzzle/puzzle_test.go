package puzzle

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"
)

// said returns keys as texts, and eight words for a group. What it gets must not depend on what fits.
func said(key string, values ...string) string {
	if strings.HasSuffix(key, "_words") {
		var list []string
		for i := range 8 {
			list = append(list, fmt.Sprint(strings.TrimSuffix(key, "_words"), i))
		}
		return strings.Join(list, ", ")
	}
	return strings.Join(append([]string{key}, values...), " ")
}

func seedOf(n uint64) (s Seed) {
	binary.BigEndian.PutUint64(s[:], n)
	return s
}

const samples = 500

// TestFits solves puzzles with what a person would read, see or hear.
func TestFits(t *testing.T) {
	t.Parallel()
	solve := map[Kind]func(*testing.T, *Puzzle) Picks{Words: byReading, Pictures: byLooking, Tones: byListening}
	for _, kind := range Kinds() {
		for n := range uint64(60) {
			p := New(kind, seedOf(n), said)
			if picks := solve[kind](t, p); !p.IsSolved(picks) {
				t.Fatalf("%s %d: %s: %012b, want %012b", kind, n, p.Question, picks, p.fits)
			}
		}
	}
}

func byReading(_ *testing.T, p *Puzzle) (picks Picks) {
	for i, o := range p.Options {
		if strings.TrimRight(o.Label, "0123456789") == p.Question {
			picks |= 1 << i
		}
	}
	return picks
}

func byLooking(t *testing.T, p *Puzzle) (picks Picks) {
	for i, o := range p.Options {
		if shapeOf(t, o.Picture.Path) == p.Question {
			picks |= 1 << i
		}
	}
	return picks
}

func byListening(t *testing.T, p *Puzzle) (picks Picks) {
	t.Helper()
	for i, length := range lengths(t, p.Sound) {
		if (length > (longTone+shortTone)/2) == (p.Question == "puzzle.long") {
			picks |= 1 << i
		}
	}
	return picks
}

// lengths returns how long each tone of a WAV file is, in samples.
func lengths(t *testing.T, file []byte) (list []int) {
	t.Helper()
	size := len(file) - 44
	if string(file[:4]) != "RIFF" || int(binary.LittleEndian.Uint32(file[4:])) != len(file)-8 || string(file[8:16]) != "WAVEfmt " ||
		string(file[36:40]) != "data" || int(binary.LittleEndian.Uint32(file[40:])) != size {
		t.Fatalf("not a WAV file: %x", file[:44])
	}
	began, heard := -1, -1
	for i, sample := range file[44:] {
		if sample > silence+20 || sample < silence-20 {
			if began < 0 {
				began = i
			}
			heard = i
		}
		if began >= 0 && i-heard > sampleRate/10 {
			list, began = append(list, heard-began), -1
		}
	}
	return list
}

// TestNothingTells checks that options that fit differ from the others in nothing but what a person reads, sees or
// hears: not in number, place, order, length or form.
func TestNothingTells(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds() {
		counts, questions, places := map[int]int{}, map[string]int{}, make([]int, 16)
		var size, options int
		for n := range uint64(samples) {
			p := New(kind, seedOf(n), said)
			options = len(p.Options)
			counts[bits.OnesCount16(uint16(p.fits))]++
			questions[p.Question]++
			for i := range p.Options {
				if p.fits.Has(i) {
					places[i]++
				}
			}
			if n == 0 {
				size = len(p.Sound)
			}
			if len(p.Sound) != size {
				t.Fatalf("%s: sounds of %d and %d bytes", kind, size, len(p.Sound))
			}
			for _, o := range p.Options {
				if o.Picture != nil && strings.Count(o.Picture.Path, " ") != 2*pathPoints {
					t.Fatalf("%s: %s", p.Question, o.Picture.Path)
				}
			}
		}
		for n := fewest; n <= most; n++ {
			if counts[n] < samples/4 || len(counts) != most-fewest+1 {
				t.Errorf("%s: so many fit: %v", kind, counts)
			}
		}
		for i, n := range places[:options] {
			if want := samples * 4 / options; n < want*3/4 || n > want*5/4 {
				t.Errorf("%s: option %d fits %d times, want about %d", kind, i, n, want)
			}
		}
		for question, n := range questions {
			if want := samples / len(questions); n < want*2/3 || n > want*4/3 {
				t.Errorf("%s: %s is asked %d times, want about %d", kind, question, n, want)
			}
		}
		if guesses := 3 * choose(options, fewest); guesses < 160 {
			t.Errorf("%s: the best guess is right in one of %d times", kind, guesses)
		}
	}
}

func choose(n, k int) int {
	if k == 0 {
		return 1
	}
	return choose(n-1, k-1) * n / k
}

// TestOneSeedOnePuzzle: more time shows the same puzzle again, in any language with the same solution.
func TestOneSeedOnePuzzle(t *testing.T) {
	t.Parallel()
	loud := func(key string, values ...string) string { return strings.ToUpper(said(key, values...)) }
	for _, kind := range Kinds() {
		a, b, c := New(kind, seedOf(7), said), New(kind, seedOf(7), said), New(kind, seedOf(7), loud)
		if fmt.Sprint(a.Question, labels(a)) != fmt.Sprint(b.Question, labels(b)) || !bytes.Equal(a.Sound, b.Sound) || a.fits != c.fits {
			t.Errorf("%s: %v, %v, %v", kind, a, b, c)
		}
		if other := New(kind, seedOf(8), said); a.fits == other.fits && slices.Equal(labels(a), labels(other)) && bytes.Equal(a.Sound, other.Sound) {
			t.Errorf("%s: two seeds make one puzzle", kind)
		}
	}
	if p := New("smells", seedOf(1), said); p.Kind != Words {
		t.Errorf("an unknown kind is %s", p.Kind)
	}
}

func labels(p *Puzzle) (list []string) {
	for _, o := range p.Options {
		list = append(list, o.Label)
	}
	return list
}

// FuzzParsePicks accepts each option once, in one spelling.
func FuzzParsePicks(f *testing.F) {
	f.Add("0 3 9")
	f.Add("")
	f.Add("10")
	f.Add("1 1")
	f.Add("01 +2 -1 65536")
	p := New(Words, seedOf(1), said)
	f.Fuzz(func(t *testing.T, text string) {
		numbers := strings.Fields(text)
		picks, ok := p.ParsePicks(numbers)
		if !ok {
			return
		}
		for i := range 16 {
			if picks.Has(i) != slices.Contains(numbers, fmt.Sprint(i)) {
				t.Errorf("%q: %b", numbers, picks)
			}
		}
		if bits.OnesCount16(uint16(picks)) != len(numbers) || picks>>len(p.Options) != 0 {
			t.Errorf("%q: %b", numbers, picks)
		}
	})
}
