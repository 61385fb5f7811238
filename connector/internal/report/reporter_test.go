package report

import (
	"encoding/json"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/internal/gate"
	"github.com/proofline/proofline/connector/internal/reach"
	"github.com/proofline/proofline/connector/internal/session"
	"github.com/proofline/proofline/connector/rules"
)

// none has no extended sessions.
type none struct{}

func (none) Ends([16]byte) int64 { return 0 }

// FuzzReply tests that a node begins no more sessions than the reply allows.
func FuzzReply(f *testing.F) {
	f.Add([]byte(`{"rooms":[{"room":"R","gate":"open","share":3,"per_minute":60,"max_active":9,"nodes":2,"session_ms":60000,"recorded":["AAAAAAAAAAAAAAAAAAAAAA"]}]}`))
	f.Add([]byte(`{"rooms":[{"room":"R","gate":"open","share":1e3,"session_ms":-1},{"room":"R","error":"unknown"}]}`))
	f.Add([]byte(`{"rooms":null}`))
	now := time.UnixMilli(1_800_000_000_000)
	p := New(Options{
		Sessions: session.NewStore(testKey, none{}), FailOpen: reach.NewUnrecorded(), Log: slog.New(slog.DiscardHandler),
	})
	rm := session.NewRoom("sale", rules.Room{URL: "https://queue.example.com/r/sale", Mode: rules.SafetyNet})
	f.Fuzz(func(t *testing.T, text []byte) {
		var re Reply
		if json.Unmarshal(text, &re) != nil {
			return
		}
		for i := range re.Rooms {
			r, g := &re.Rooms[i], new(gate.Gate)
			said := &RoomReport{Room: rm.URL, Mode: rules.SafetyNet, from: NewRoom(rm.URL, g)}
			p.apply(said, r, now)
			begun := 0
			for range 100 {
				if v, _ := g.Begin(rm, netip.Addr{}, "", now, false); v == nil {
					break
				} else if begun++; v.Ends <= v.Issued || v.MaxEnds < v.Ends {
					t.Fatalf("session %+v of %q", v, text)
				}
			}
			if r.Error == "" && r.Gate != gate.Open && r.Gate != gate.Shut {
				continue // the share has not changed
			}
			if begun > max(r.Share, 0) && r.Error == "" {
				t.Fatalf("%d begin of %q", begun, text)
			}
		}
	})
}
