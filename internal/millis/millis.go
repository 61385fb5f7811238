// Package millis converts between Go's times and the milliseconds of a transcript.
package millis

import (
	"time"

	"github.com/proofline/proofline/fairness"
)

// Of returns a time in the transcript's milliseconds.
func Of(t time.Time) fairness.Time { return fairness.Time(t.UnixMilli()) }

// Time returns the time, in UTC, of the transcript's milliseconds.
func Time(t fairness.Time) time.Time { return time.UnixMilli(int64(t)).UTC() }
