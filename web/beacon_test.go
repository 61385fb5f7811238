package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness/beacon/local"
	"github.com/proofline/proofline/room/evidence"
)

// noRelays is a source of rounds that never arrive.
type noRelays struct{}

// Wait implements [evidence.Rounds].
func (noRelays) Wait(ctx context.Context, _ uint64) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestBeaconRound sends invalid rounds, a flood of them, and finally the round that a draw waits for.
func TestBeaconRound(t *testing.T) {
	t.Parallel()
	genesis := time.Now().Unix() - 1000
	b, err := local.New(local.NewKey(), local.Config{ID: "test", Genesis: genesis, Period: 1})
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := local.New(local.NewKey(), local.Config{ID: "test", Genesis: genesis, Period: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, func(o *Options) {
		rooms, pool := newRooms(t, evidence.Chain{Chain: b.Chain(), Rounds: noRelays{}})
		o.Rooms, o.Control = rooms, newControl(t, rooms, pool)
	})
	s.create(`{"slug":"sale","windows":[{"length":"300ms"}],"margin":"5s"}`)
	s.create(`{"slug":"plain","windows":[{"length":"300ms"}],"beacon":"none"}`)
	s.post("/r/sale/join", "").want(http.StatusCreated)
	var round uint64
	var signature []byte
	eventually(t, "the draw waits for its round", func() bool {
		shown := decode[struct {
			Awaited []awaitedJSON `json:"awaited"`
		}](answer{TB: t, status: 200, body: awaitedOf(s)})
		if len(shown.Awaited) == 0 {
			return false
		}
		round = shown.Awaited[0].Round
		signature, err = b.Sign(round)
		return err == nil
	})
	wrong, err := stranger.Sign(round)
	if err != nil {
		t.Fatal(err)
	}
	earlier, err := b.Sign(round - 1)
	if err != nil {
		t.Fatal(err)
	}
	send := func(slug string, round uint64, signature []byte) answer {
		return s.post("/r/"+slug+"/beacon", fmt.Sprintf(`{"round":%d,"signature":"%x"}`, round, signature))
	}
	for _, body := range []string{`{`, `{}`, `{"round":0,"signature":"00"}`, `{"round":-1,"signature":"00"}`, `{"round":1e3,"signature":"00"}`,
		`{"round":18446744073709551616,"signature":"00"}`, `{"round":1,"signature":"0"}`, `{"round":1,"signature":""}`, `{"round":1,"signature":7}`} {
		s.post("/r/sale/beacon", body).problem(http.StatusBadRequest, "invalid")
	}
	s.post("/r/sale/beacon", `{"round":1,"signature":"`+strings.Repeat("0", visitorBody)+`"}`).problem(http.StatusRequestEntityTooLarge, "too-large")
	s.post("/r/sale/beacon", "round=1", "Content-Type: application/x-www-form-urlencoded").problem(http.StatusUnsupportedMediaType, "media-type")
	send("none", round, signature).problem(http.StatusNotFound, "not-found")
	send("plain", round, signature).problem(http.StatusConflict, "round")
	for name, a := range map[string]answer{
		"another round":  send("sale", round-1, earlier),
		"relabelled":     send("sale", round, earlier),
		"another chain":  send("sale", round, wrong),
		"short":          send("sale", round, signature[:47]),
		"long":           send("sale", round, append(signature[:48:48], 0)),
		"no point":       send("sale", round, make([]byte, 48)),
		"beyond the day": send("sale", 1<<64-1, signature),
	} {
		t.Log(name)
		a.problem(http.StatusConflict, "round")
	}
	var flood sync.WaitGroup
	var refused, busy atomic.Int32
	for range 150 {
		flood.Go(func() {
			switch a := send("sale", round, wrong); a.status {
			case http.StatusConflict:
				refused.Add(1)
			case http.StatusServiceUnavailable:
				busy.Add(1)
			}
		})
	}
	flood.Wait()
	if refused.Load()+busy.Load() != 150 || busy.Load() == 0 {
		t.Errorf("of a flood %d were verified, and %d were told to retry", refused.Load(), busy.Load())
	}
	send("sale", round, signature).want(http.StatusOK)
	eventually(t, "the window is drawn", func() bool { return strings.Contains(s.get("/r/sale/state").body, `"drawn":1,`) })
	send("sale", round, signature).problem(http.StatusConflict, "round") // replayed: no draw waits for it any more
}

func awaitedOf(s *site) string {
	body := s.get("/v1/rooms/sale").want(http.StatusOK).body
	return `{"awaited":` + body[strings.Index(body, `"awaited":`)+len(`"awaited":`):]
}
