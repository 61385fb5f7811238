package client

import (
	"net/http"
	"strconv"
	"strings"
)

// VerdictHeader has what a bot tool in front thinks of a request: "refuse", or "score=NN" with 0 for a program to 100
// for a person.
const VerdictHeader = "X-Proofline-Verdict"

// MaxScore is the highest score.
const MaxScore = 100

// Verdict is what a bot tool thinks of a request. The zero value is no verdict.
type Verdict struct {
	IsRefused bool
	HasScore  bool
	Score     uint32 // 0 to MaxScore
}

// Refuses reports whether a join is refused in a room that wants at least a score.
func (v Verdict) Refuses(least uint32) bool { return v.IsRefused || v.HasScore && v.Score < least }

// Verdict returns the verdict of a trusted proxy. Clients' own headers count for nothing. Of several verdicts the
// strictest counts, so that a client cannot improve on it if a proxy adds its header to the client's.
func (as *Addresses) Verdict(r *http.Request) (v Verdict) {
	lines := r.Header[VerdictHeader]
	if len(lines) == 0 || !as.IsTrusted(addressOf(r.RemoteAddr)) {
		return v
	}
	for _, line := range lines {
		for text := range strings.SplitSeq(line, ",") {
			one, ok := parseVerdict(strings.TrimSpace(text))
			switch {
			case !ok:
				as.warnVerdict(text)
			case one.IsRefused:
				v.IsRefused = true
			case !v.HasScore || one.Score < v.Score:
				v.HasScore, v.Score = true, one.Score
			}
		}
	}
	return v
}

// parseVerdict parses one verdict.
func parseVerdict(text string) (v Verdict, ok bool) {
	if text == "refuse" {
		return Verdict{IsRefused: true}, true
	}
	digits, ok := strings.CutPrefix(text, "score=")
	if !ok || len(digits) > len("100") || strings.Trim(digits, "0123456789") != "" {
		return v, false
	}
	score, err := strconv.ParseUint(digits, 10, 8)
	if err != nil || score > MaxScore {
		return v, false
	}
	return Verdict{HasScore: true, Score: uint32(score)}, true
}

// warnVerdict logs the first malformed verdict of a trusted proxy. An empty one is none.
func (as *Addresses) warnVerdict(text string) {
	if text != "" && !as.warnedVerdict.Load() && as.warnedVerdict.CompareAndSwap(false, true) {
		as.log.Warn("ignoring "+VerdictHeader+" of a trusted proxy: it must be refuse, or score= and a number from 0 to 100",
			"value", text[:min(len(text), 40)])
	}
}
