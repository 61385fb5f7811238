package issuers_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofline/proofline/console/issuers"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/issuertest"
	"github.com/proofline/proofline/internal/outbound"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/setting"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

// own is the server's own issuer, whose page is at one address for all rooms.
type own struct{ room.Issuer }

func (own) Page(slug, method string) string {
	return "http://127.0.0.1:1/issuer/" + slug + "." + method
}

func club(name string) credential.Method {
	m := issuertest.Signed("club", 0).Method
	m.Name = name
	return m
}

// sale is a room whose only lane needs the method club.
func sale(slug, page string) room.Config {
	return room.Config{Slug: slug, Beacon: "none", Methods: []credential.Method{club("club")},
		Lanes:    []room.LaneRule{{Name: "general", Weight: 1, Needs: []string{"club"}}},
		Settings: room.Settings{Issuers: []string{"club " + page}}}
}

func create(t *testing.T, rooms *room.Rooms, c room.Config) *room.Room {
	t.Helper()
	r, err := rooms.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newRooms(t *testing.T) *room.Rooms {
	t.Helper()
	return servertest.Rooms(t, servertest.Pool(t, pgtest.URL(t)), func(o *room.Options) { o.Issuer = own{} })
}

var here = outbound.Guard{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

func watch(rooms *room.Rooms, g outbound.Guard, service *issuers.Service) *issuers.Watch {
	return issuers.New(issuers.Options{Rooms: rooms, Guard: g, Log: slog.New(slog.DiscardHandler),
		Own: func(string, credential.Method) *issuers.Service { return service }})
}

// only returns the only finding of a room, and what it says.
func only(t *testing.T, w *issuers.Watch, r *room.Room) (f issuers.Finding, says string) {
	t.Helper()
	list := w.Of(r)
	if len(list) != 1 {
		t.Fatalf("%d findings: %+v", len(list), list)
	}
	text, do := list[0].Text()
	if (do == "") != (list[0].State == issuers.Present) {
		t.Errorf("%q, but to do: %q", text, do)
	}
	return list[0], text
}

func confirmation(r *room.Room) *room.Confirmation {
	settings, _ := r.Settings()
	return &room.Confirmations(r.Snapshot(), settings)[0]
}

// TestPage has an issuer answer in each way, and checks that only failures in a row make it away.
func TestPage(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/derby" || r.Header.Get("Cookie") != "" {
			t.Errorf("request %s %s", r.Method, r.URL)
		}
		w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
		w.WriteHeader(int(status.Load()))
	}))
	t.Cleanup(site.Close)
	rooms := newRooms(t)
	r := create(t, rooms, sale("sale", site.URL+"/derby Fan Club"))
	w := watch(rooms, here, nil)
	if f, _ := only(t, w, r); f.State != issuers.Unknown {
		t.Errorf("before it was asked: %+v", f)
	}
	for _, step := range []struct {
		status int
		want   issuers.State
		says   string
	}{
		{200, issuers.Present, "answers. Whether it confirms visitors for club"},
		{503, issuers.Present, "answers"},
		{302, issuers.Present, "answers"},
		{503, issuers.Present, "answers"},
		{503, issuers.Away, "it responded with 503 Service Unavailable. New visitors cannot show club"},
		{599, issuers.Away, "it responded with 599."},
		{405, issuers.Present, "answers"},
		{404, issuers.Absent, "the page does not exist"},
		{410, issuers.Absent, "the page does not exist"},
		{500, issuers.Absent, "the page does not exist"},
		{500, issuers.Away, "500 Internal Server Error"},
	} {
		status.Store(int64(step.status))
		w.Round(t.Context())
		f, says := only(t, w, r)
		if f.State != step.want || !strings.Contains(says, step.says) || !strings.HasPrefix(says, "The issuer at 127.0.0.1:") {
			t.Errorf("after %d: %+v %q", step.status, f, says)
		}
		if is := w.IsAway(r, confirmation(r)); is != (step.want == issuers.Away) {
			t.Errorf("after %d, it is away: %t", step.status, is)
		}
	}
	if n := w.Count(); n != 1 {
		t.Errorf("%d are away", n)
	}
	site.Close()
	w.Round(t.Context())
	if f, _ := only(t, w, r); f.State != issuers.Away || f.Reason != "the connection failed" {
		t.Errorf("after its server has stopped: %+v", f)
	}
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	for !r.Snapshot().Ended {
		time.Sleep(10 * time.Millisecond)
	}
	if w.Round(t.Context()); len(w.Of(r)) != 0 || w.Count() != 0 {
		t.Errorf("after the room: %+v, %d away", w.Of(r), w.Count())
	}
}

// TestForbidden checks that a page in this server's network is asked for only if the operator allows the network.
func TestForbidden(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(site.Close)
	local, err := url.Parse(site.URL)
	if err != nil {
		t.Fatal(err)
	}
	rooms := newRooms(t)
	r, named := create(t, rooms, sale("sale", site.URL)), create(t, rooms, sale("named", "http://localhost:"+local.Port()+"/"))
	w := watch(rooms, outbound.Guard{}, nil)
	for range 2 {
		w.Round(t.Context())
	}
	for _, r := range []*room.Room{r, named} {
		if f, says := only(t, w, r); f.State != issuers.Forbidden || !strings.Contains(says, "not public") {
			t.Errorf("%s: %+v %q", r.Slug, f, says)
		}
		if w.IsAway(r, confirmation(r)) {
			t.Errorf("%s: visitors are told that it is away", r.Slug)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("it was asked %d times", n)
	}
	w = watch(rooms, here, nil)
	if w.Round(t.Context()); asked.Load() != 2 {
		t.Errorf("it was asked %d times", asked.Load())
	}
}

// TestOwn checks that of the own issuer the service is asked that it needs, and not its page.
func TestOwn(t *testing.T) {
	t.Parallel()
	rooms := newRooms(t)
	r := create(t, rooms, sale("sale", own{}.Page("sale", "club")))
	fails := errors.New("no route to host")
	service := &issuers.Service{Name: "The mail server", Ask: func(context.Context) error { return fails }}
	w := watch(rooms, outbound.Guard{}, service)
	w.Round(t.Context())
	w.Round(t.Context())
	f, says := only(t, w, r)
	if f.State != issuers.Away || !f.IsOwn || !w.IsAway(r, confirmation(r)) ||
		!strings.HasPrefix(says, "The mail server has not answered since") {
		t.Errorf("%+v %q", f, says)
	}
	fails = nil
	w.Round(t.Context())
	if f, _ := only(t, w, r); f.State != issuers.Present {
		t.Errorf("%+v", f)
	}
	if list := watch(rooms, outbound.Guard{}, nil).Of(r); len(list) != 0 {
		t.Errorf("of an issuer that needs nothing: %+v", list)
	}
}

// TestRooms checks which rooms' issuers are asked.
func TestRooms(t *testing.T) {
	t.Parallel()
	rooms := newRooms(t)
	in := func(d time.Duration) *time.Time { at := time.Now().Add(d); return &at }
	const page = "https://club.example.org/derby"
	later, coming, spare, lots, none := sale("later", page), sale("coming", page), sale("spare", page), sale("lots", page), sale("none", page)
	later.Opens, later.Starts = in(48*time.Hour), in(48*time.Hour)
	coming.Opens, coming.Starts = in(12*time.Hour), in(12*time.Hour)
	spare.Lanes = []room.LaneRule{{Name: "general", Weight: 1}}
	lots.Lanes, lots.Lots = spare.Lanes, []string{"club"}
	none.Issuers = nil
	w := watch(rooms, outbound.Guard{}, nil)
	for want, configs := range [][]room.Config{{later, spare, none}, {coming, lots}} {
		for _, c := range configs {
			if got := len(w.Of(create(t, rooms, c))); got != want {
				t.Errorf("%s: %d", c.Slug, got)
			}
		}
	}
	var unset *issuers.Watch
	r := create(t, rooms, sale("sale", page))
	if unset.Of(r) != nil || unset.Count() != 0 || unset.IsAway(r, &room.Confirmation{Issuer: setting.Issuer{}}) {
		t.Error("a watch that is not there has found something")
	}
}

// TestTurns has rooms need more pages on one host than a round asks for.
func TestTurns(t *testing.T) {
	t.Parallel()
	var asked [2]atomic.Int64
	var page [2]string
	for i := range page { // two ports are one host
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked[i].Add(1)
			w.WriteHeader(http.StatusBadGateway)
		}))
		t.Cleanup(site.Close)
		page[i] = site.URL
	}
	rooms := newRooms(t)
	var list []*room.Room
	for i := range 6 {
		slug := fmt.Sprint("sale", i)
		list = append(list, create(t, rooms, sale(slug, page[i%2]+"/"+slug)))
	}
	w := watch(rooms, here, nil)
	for round, away := range []int{0, 2, 4, 6} { // those asked longest ago come first
		w.Round(t.Context())
		if n := asked[0].Load() + asked[1].Load(); n != int64(4*(round+1)) || w.Count() != away {
			t.Errorf("round %d: %d requests in all, %d issuers are away, want %d", round, n, w.Count(), away)
		}
	}
	for _, r := range list {
		if f, _ := only(t, w, r); f.State != issuers.Away {
			t.Errorf("%s: %+v", r.Slug, f)
		}
	}
}
