package room

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/proofline/proofline/internal/pace"
)

// LimitError is returned when a room, or the server, has taken as many joins in this minute as its limit allows.
type LimitError struct {
	Server bool          // the server's limit, not the room's
	Wait   time.Duration // time after which the visitor should retry
}

func (e *LimitError) Error() string {
	whose := "this room"
	if e.Server {
		whose = "the server"
	}
	return fmt.Sprintf("%s takes no more joins for the moment: try again after the time in Retry-After", whose)
}

// Refused visitors retry this much later than a token is free, each at another time: otherwise all of them would come
// back in the same second.
const (
	minSpread = 3 * time.Second
	maxSpread = 20 * time.Second
)

// joinPace limits how many joins this node takes a minute, in a room and in all of them.
type joinPace struct {
	room   pace.Limit
	server *pace.Limit
	most   uint32 // of the server; 0: no limit
}

// take charges a join to both limits. Error: [*LimitError].
func (p *joinPace) take(now time.Time, most uint32) error {
	wait, isServer := p.room.Take(now, most), false
	if wait == 0 {
		if wait, isServer = p.server.Take(now, p.most), true; wait == 0 {
			return nil
		}
		p.room.GiveBack(most)
	}
	spread := minSpread + rand.N(maxSpread-minSpread) //nolint:gosec // spreads load; no secret
	return &LimitError{Server: isServer, Wait: wait + spread}
}

// giveBack refunds a join that was not recorded.
func (p *joinPace) giveBack(most uint32) {
	p.room.GiveBack(most)
	p.server.GiveBack(p.most)
}
