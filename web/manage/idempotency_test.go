package manage

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control/pgcontrol"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

// TestUnknownOutcome: a request with an unknown outcome is not executed again with the same key; one that had
// no effect may be.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	pool := servertest.Pool(t, pgtest.URL(t))
	k := &keys{store: pgcontrol.NewStore(pool).Keys, status: func(err error) int {
		if errors.Is(err, room.ErrNotFound) {
			return http.StatusNotFound
		}
		return http.StatusInternalServerError
	}}
	send := func(ctx context.Context, key string, do func() (reply, error)) (reply, error) {
		r := httptest.NewRequest(http.MethodPost, "/v1/rooms", nil)
		r.Header.Set(KeyHeader, key)
		c := &call{Context: ctx, echo: echo.New().NewContext(r, httptest.NewRecorder()), actor: account.ServerActor(account.MainOrg)}
		return k.once(&route{key: keyKept}, c, do)
	}
	for _, c := range []struct {
		name  string
		err   error
		again error // the error of a second request; nil: it is executed
	}{
		{"late", context.DeadlineExceeded, ErrKeyUnderWay}, {"broken", errors.New("connection lost"), ErrKeyUnderWay},
		{"refused", room.ErrNotFound, nil}, {"busy", room.ErrBusy, nil}, {"stopping", room.ErrStopping, nil},
	} {
		if _, err := send(t.Context(), c.name, func() (reply, error) { return reply{}, c.err }); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", c.name, err)
		}
		done := false
		_, err := send(t.Context(), c.name, func() (reply, error) { done = true; return answer(wire.Calls{By: wire.ByPull}) })
		if !errors.Is(err, c.again) || done != (c.again == nil) {
			t.Errorf("%s again: done %t, %v, want %v", c.name, done, err, c.again)
		}
	}

	// The outcome is kept although the client has gone.
	gone, leave := context.WithTimeout(t.Context(), time.Minute)
	if _, err := send(gone, "gone", func() (reply, error) { leave(); return answer(wire.Calls{By: wire.ByPull}) }); err != nil {
		t.Fatal(err)
	}
	out, err := send(t.Context(), "gone", func() (reply, error) { t.Error("done twice"); return reply{}, nil })
	if err != nil || string(out.raw) != `{"by":"pull"}`+"\n" {
		t.Errorf("replayed %s, %v", out.raw, err)
	}
}
