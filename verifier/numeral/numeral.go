// Package numeral writes numbers as people read them in English: in reports, on
// terminals, in what statistics found.
package numeral

import (
	"fmt"
	"strconv"
)

// Group writes a number with a comma after each thousand.
func Group[T ~int | ~uint64](n T) string {
	s := strconv.FormatUint(uint64(n), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count writes how many there are of something, which is called one or many.
func Count(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Group(n) + " " + many
}

// Probability writes how likely something is, from 0 to 1, in percent; never
// that it is certain, or impossible.
func Probability(p float64) string {
	switch {
	case p > 0.999:
		return "over 99.9 %"
	case p < 0.01:
		return "under 1 %"
	}
	return fmt.Sprintf("%.0f %%", 100*p)
}
