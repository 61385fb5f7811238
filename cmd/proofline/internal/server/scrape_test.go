package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/meter"
)

// BenchmarkScrape measures a scrape of a server with a thousand rooms.
func BenchmarkScrape(b *testing.B) {
	rooms := servertest.Rooms(b, servertest.Pool(b, pgtest.URL(b)))
	for i := range maxMeasured {
		if _, err := rooms.Create(b.Context(), room.Config{Slug: fmt.Sprintf("room-%d", i)}); err != nil {
			b.Fatal(err)
		}
	}
	handler, err := metricsHandler(metrics{rooms: rooms, streams: &atomic.Int64{}}, meter.New(), nil, http.NotFoundHandler())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
		if n := strings.Count(answer.Body.String(), "\nproofline_room_entries{"); n != maxMeasured {
			b.Fatalf("%d rooms", n)
		}
	}
}
