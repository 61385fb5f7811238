package reach

import "github.com/proofline/proofline/connector/internal/id"

// Report is a past fail-open interval in reports and in the state file.
type Report struct {
	ID       string `json:"id"`
	From     int64  `json:"from"` // ms since 1970
	Until    int64  `json:"until"`
	Requests uint64 `json:"requests"`
}

// Report returns the interval as it is reported. It has ended.
func (i Interval) Report() Report {
	from, until := i.From.UnixMilli(), i.Until.UnixMilli()
	return Report{id.Text(i.ID), from, max(until, from+1), i.Requests}
}
