package numeral_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/proofline/proofline/verifier/numeral"
)

func TestNumeral(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"0":                          numeral.Group(0),
		"999":                        numeral.Group(999),
		"1,000":                      numeral.Group(1000),
		"1,234,567":                  numeral.Group(uint64(1_234_567)),
		"18,446,744,073,709,551,615": numeral.Group(uint64(math.MaxUint64)),
		"1 window":                   numeral.Count(1, "window", "windows"),
		"0 windows":                  numeral.Count(0, "window", "windows"),
		"12,000 windows":             numeral.Count(12_000, "window", "windows"),
		"over 99.9 %":                numeral.Probability(1),
		"under 1 %":                  numeral.Probability(0),
		"1 %":                        numeral.Probability(0.01),
		"50 %":                       numeral.Probability(0.5),
		"100 %":                      numeral.Probability(0.9985),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func ExampleCount() {
	fmt.Println(numeral.Count(1, "person", "people"), numeral.Count(2500, "person", "people"))
	// Output: 1 person 2,500 people
}
