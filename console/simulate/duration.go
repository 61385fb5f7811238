package simulate

import (
	"errors"
	"strings"
	"time"

	"github.com/proofline/proofline/fairness"
)

// Duration is a time.Duration in whole milliseconds with the JSON form "1m30s".
type Duration time.Duration

// String formats the duration without trailing zero units: "1m", not "1m0s".
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// MarshalText implements [encoding.TextMarshaler].
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses durations of [time.ParseDuration] in whole milliseconds.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v%time.Millisecond != 0 {
		return errors.New("must be a duration such as 30s or 2m")
	}
	*d = Duration(v)
	return nil
}

func (d Duration) millis() fairness.Millis {
	return fairness.Millis(time.Duration(d).Milliseconds())
}

// after returns the time this long after the opening.
func (d Duration) after() fairness.Time { return fairness.Time(d.millis()) }

// since returns the duration from the opening to t.
func since(t fairness.Time) Duration { return Duration(time.Duration(t) * time.Millisecond) }
