package simulate

import (
	"errors"
	"strings"
	"time"

	"github.com/proofline/proofline/fairness"
)

// Duration is a time.Duration in whole milliseconds that is written "1m30s" in
// JSON.
type Duration time.Duration

// String writes the duration without units that are zero: "1m", not "1m0s".
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

// MarshalText writes what String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what time.ParseDuration reads, in whole milliseconds.
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

// after is the moment so long after the opening.
func (d Duration) after() fairness.Time { return fairness.Time(d.millis()) }

// since is the time from the opening to a moment.
func since(t fairness.Time) Duration { return Duration(time.Duration(t) * time.Millisecond) }
