package state

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/connector/internal/gate"
	"github.com/proofline/proofline/connector/internal/reach"
)

func FuzzState(f *testing.F) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	some := []reach.Past{{Room: "https://queue.example.com/r/sale", Interval: reach.Interval{From: now.Add(-time.Hour), Until: now, Requests: 1 << 40, ID: [16]byte{1, 2}}}}
	f.Add(Format(State{}))
	f.Add(Format(State{FailOpen: some, Gates: []gate.Saved{{
		Room: "https://queue.example.com/r/sale", At: now,
		Reply: gate.Reply{IsOpen: true, PerMinute: 600, Nodes: 2, Length: 600_000},
	}}}))
	f.Add(fmt.Appendf(nil, `{"version":1,"fail_open":[{"room":"http://127.0.0.1","id":"AAAAAAAAAAAAAAAAAAAAAA","from":%d,"until":9007199254740991,"requests":0}]}`, now.UnixMilli()))
	f.Add([]byte(`{"version":1,"fail_open":[],"gates":[{"room":"https://x","at":1,"per_minute":-1,"max_active":0,"nodes":0,"session_ms":1}]}`))
	f.Add([]byte(`{"version":1,"fail_open":[{"room":"ftp://x","id":"","from":-1,"until":0,"requests":18446744073709551615}]}{}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := Parse(text, now)
		if err != nil {
			return
		}
		again, err := Parse(Format(list), now)
		if diff := cmp.Diff(list, again); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
}
