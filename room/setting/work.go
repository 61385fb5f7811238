package setting

import (
	"fmt"
	"math"
	"time"

	"github.com/proofline/proofline/fairness/credential"
)

// workCosts says how long devices search for a number of zero bits on average.
func workCosts(bits int) string {
	took := func(rate float64) time.Duration {
		d := time.Duration(math.Exp2(float64(bits)) / rate * float64(time.Second))
		return d.Round(max(time.Duration(math.Pow10(int(math.Log10(float64(d))))/10), 1)) // two digits
	}
	return fmt.Sprintf("%d take an old phone %v, a laptop %v, and a graphics card %v", bits,
		took(credential.PhoneRate), took(credential.LaptopRate), took(credential.CardRate))
}
