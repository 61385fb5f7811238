package relay_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proofline/proofline/fairness/beacon/local"
	"github.com/proofline/proofline/fairness/beacon/relay"
)

// network maps host names to relays without sockets, so that tests can fake the time.
type network map[string]http.HandlerFunc

func (n network) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	n[r.URL.Host](w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// fake returns a beacon with a period of 3 s, whose round 1 appears in 100 s, and a client of its relays.
func fake(t *testing.T, relays func(honest http.HandlerFunc) network, names ...string) (*local.Beacon, *relay.Client) {
	t.Helper()
	l, err := local.New(local.NewKey(), local.Config{ID: "fake", Genesis: time.Now().Unix() + 100, Period: 3})
	if err != nil {
		t.Fatal(err)
	}
	c := &relay.Client{Chain: l.Chain(), HTTP: &http.Client{Transport: relays(l.Handler().ServeHTTP)}}
	for _, name := range names {
		c.URLs = append(c.URLs, "http://"+name)
	}
	return l, c
}

// takes responds after a time, unless the client is gone.
func takes(d time.Duration, then http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
			then(w, r)
		case <-r.Context().Done():
		}
	}
}

// between checks the time passed since start.
func between(t *testing.T, start time.Time, low, high time.Duration) {
	t.Helper()
	if took := time.Since(start); took < low || took > high {
		t.Errorf("took %s, want %s to %s", took, low, high)
	}
}

// TestSlowRelay checks that a slow relay only costs the time until the next one is asked.
func TestSlowRelay(t *testing.T) {
	for name, slow := range map[string]http.HandlerFunc{"hanging": hangs, "slow": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, c := fake(t, func(honest http.HandlerFunc) network {
					if slow == nil {
						slow = takes(4*time.Second, honest)
					}
					return network{"slow": slow, "quick": takes(20*time.Millisecond, honest)}
				}, "slow", "quick")
				time.Sleep(200 * time.Second)
				start := time.Now()
				got, err := c.Round(t.Context(), 5)
				if err != nil || l.Chain().Verify(5, got) != nil {
					t.Errorf("%x, %v", got, err)
				}
				between(t, start, 320*time.Millisecond, 320*time.Millisecond)
				start = time.Now() // the quick relay is tried first from now on
				if _, err := c.Round(t.Context(), 6); err != nil {
					t.Error(err)
				}
				between(t, start, 20*time.Millisecond, 20*time.Millisecond)
			})
		})
	}
}

// TestFailuresCostNoTime: after a failure the next relay is asked at once.
func TestFailuresCostNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := fake(t, func(honest http.HandlerFunc) network {
			return network{"bad": takes(time.Millisecond, says(500, "")), "late": takes(time.Millisecond, says(404, "")), "good": honest}
		}, "bad", "late", "good")
		time.Sleep(200 * time.Second)
		start := time.Now()
		if _, err := c.Round(t.Context(), 5); err != nil {
			t.Error(err)
		}
		between(t, start, 2*time.Millisecond, 2*time.Millisecond)
	})
}

// TestPrefersLastRelay: the relay that responded last is tried first.
func TestPrefersLastRelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, good := 0, 0
		_, c := fake(t, func(honest http.HandlerFunc) network {
			return network{"bad": func(w http.ResponseWriter, _ *http.Request) {
				bad++
				w.WriteHeader(http.StatusInternalServerError)
			}, "good": func(w http.ResponseWriter, r *http.Request) {
				good++
				honest(w, r)
			}}
		}, "bad", "good")
		time.Sleep(200 * time.Second)
		for n := range uint64(3) {
			if _, err := c.Round(t.Context(), 1+n); err != nil {
				t.Error(err)
			}
		}
		if bad != 1 || good != 3 {
			t.Errorf("asked the bad relay %d times and the good one %d times, want 1 and 3", bad, good)
		}
	})
}

// TestSlowIsBetterThanNone: the first relay may still respond after others were asked, too.
func TestSlowIsBetterThanNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := fake(t, func(honest http.HandlerFunc) network {
			return network{"slow": takes(4*time.Second, honest), "bad": says(500, ""), "late": says(404, "")}
		}, "slow", "bad", "late")
		time.Sleep(200 * time.Second)
		start := time.Now()
		if _, err := c.Round(t.Context(), 5); err != nil {
			t.Error(err)
		}
		between(t, start, 4*time.Second, 4*time.Second)
	})
}

func TestAllHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := fake(t, func(http.HandlerFunc) network { return network{"one": hangs, "two": hangs} }, "one", "two")
		start := time.Now()
		_, err := c.Round(t.Context(), 5)
		if err == nil || !strings.Contains(err.Error(), "one: no answer within 5s; two: no answer within 5s") {
			t.Errorf("error %v", err)
		}
		between(t, start, 5*time.Second, 6*time.Second)
	})
}

// TestFutureRound: relays respond to requests for a future round with 404 or 425, which does not count as a
// failure.
func TestFutureRound(t *testing.T) {
	for _, code := range []int{http.StatusNotFound, http.StatusTooEarly} {
		synctest.Test(t, func(t *testing.T) {
			_, c := fake(t, func(http.HandlerFunc) network { return network{"one": says(500, ""), "two": says(code, "")} }, "one", "two")
			if _, err := c.Round(t.Context(), 5); !errors.Is(err, relay.ErrNotYet) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestWait sends no request before the round's time, and gets the round soon after.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, genesis := 0, time.Now().Add(100*time.Second)
		l, c := fake(t, func(honest http.HandlerFunc) network {
			return network{"one": func(w http.ResponseWriter, r *http.Request) {
				asked++
				if time.Now().Before(genesis.Add(2*time.Hour + 600*time.Millisecond)) { // relays need a moment to publish it
					http.NotFound(w, r)
					return
				}
				honest(w, r)
			}}
		}, "one")
		got, err := c.Wait(t.Context(), 2401) // two hours after the genesis
		if err != nil || l.Chain().Verify(2401, got) != nil {
			t.Errorf("%x, %v", got, err)
		}
		between(t, genesis.Add(2*time.Hour), 600*time.Millisecond, 1700*time.Millisecond)
		if asked < 2 || asked > 3 {
			t.Errorf("asked %d times", asked)
		}
		if _, err := c.Wait(t.Context(), 2401); err != nil || asked > 3 {
			t.Errorf("asked again for what is there: %v", err)
		}
	})
}

// TestWaitThroughOutage: an hour without relays only delays the round, and the relays are not asked
// too often meanwhile.
func TestWaitThroughOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, start := 0, time.Now()
		var logged bytes.Buffer
		l, c := fake(t, func(honest http.HandlerFunc) network {
			return network{"one": func(w http.ResponseWriter, r *http.Request) {
				if asked++; time.Since(start) < time.Hour {
					w.WriteHeader(http.StatusBadGateway)
					return
				}
				honest(w, r)
			}, "two": takes(time.Second, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })}
		}, "one", "two")
		c.Log = slog.New(slog.NewTextHandler(&logged, nil))
		got, err := c.Wait(t.Context(), 1)
		if err != nil || l.Chain().Verify(1, got) != nil {
			t.Errorf("%x, %v", got, err)
		}
		between(t, start, time.Hour, time.Hour+25*time.Second)
		if asked < 150 || asked > 400 {
			t.Errorf("asked %d times in an hour", asked)
		}
		if lines := strings.Count(logged.String(), "\n"); lines < 4 || lines > 10 || !strings.Contains(logged.String(), "one: status 502 Bad Gateway; two: status 503 Service Unavailable") {
			t.Errorf("%d lines in the log:\n%s", lines, &logged)
		}
	})
}

// TestWaitEnds: waiting ends with its context, and the error says why.
func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := fake(t, func(http.HandlerFunc) network { return network{"one": says(500, "")} }, "one")
		for _, limit := range []struct {
			time time.Duration
			want string
		}{{time.Minute, "wait for round 1, which appears at 2000-01-01T00:01:40Z: context deadline exceeded"}, {3 * time.Minute, "one: status 500"}} {
			ctx, cancel := context.WithTimeout(t.Context(), limit.time)
			start := time.Now()
			_, err := c.Wait(ctx, 1)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), limit.want) {
				t.Errorf("error %v, want %q", err, limit.want)
			}
			between(t, start, limit.time, limit.time)
			cancel()
		}
	})
}

// TestWaitForever: waiting for a round that never appears ends with the context.
func TestWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := fake(t, func(http.HandlerFunc) network { return network{} }, "one")
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		if _, err := c.Wait(ctx, 1<<63); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}
