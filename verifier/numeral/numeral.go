// Package numeral formats numbers for English texts, such as reports and terminal output.
package numeral

import (
	"fmt"
	"strconv"
)

// Group formats a number with a comma after each group of thousands.
func Group[T ~int | ~uint64](n T) string {
	s := strconv.FormatUint(uint64(n), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count formats a count with its noun, which has the form one or many.
func Count(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Group(n) + " " + many
}

// Probability formats a probability from 0 to 1 as a percentage, never as certain or impossible.
func Probability(p float64) string {
	switch {
	case p > 0.999:
		return "over 99.9 %"
	case p < 0.01:
		return "under 1 %"
	}
	return fmt.Sprintf("%.0f %%", 100*p)
}
