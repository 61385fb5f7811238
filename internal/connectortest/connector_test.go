// Package connectortest tests visits to a site behind a connector, with a real room.
package connectortest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/connector"
	"github.com/proofline/proofline/connector/rules"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/activity/pgactivity"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/control/pgcontrol"
	"github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/console/site/pgsite"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/web"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

const token = "the-management-token"

// server is a real server that can be stopped and restarted.
type server struct {
	testing.TB
	address string
	clock   *pgtest.Clock // of the rooms
	pool    *pgxpool.Pool
	key     *keys.MasterKey
	rooms   *room.Rooms // of the latest start
	stop    func()
}

// serve starts a real server and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	return newServer(t).address
}

func newServer(t *testing.T) *server {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	clock := pgtest.NewClock(t)
	s := &server{TB: t, address: "http://" + l.Addr().String(), clock: clock, pool: servertest.Pool(t, clock.URL),
		key: servertest.MasterKey(t)}
	s.run(l)
	t.Cleanup(func() { s.stop() })
	return s
}

// run serves until it is stopped.
func (s *server) run(l net.Listener) {
	s.Helper()
	log := servertest.Log(s)
	rooms := servertest.Rooms(s, s.pool, func(o *room.Options) { o.PublicURL, o.MasterKey = s.address, s.key })
	s.rooms = rooms
	record := activity.New(activity.Options{
		Store: pgactivity.NewStore(s.pool), IsRefusal: control.IsRefusal, Log: log,
	})
	counter := control.New(control.Options{
		Rooms: rooms, Store: pgcontrol.NewStore(s.pool), Records: pgroom.NewStore(s.pool), Activity: record, Log: log,
	})
	accounts := account.New(account.Options{
		Store: pgaccount.NewStore(s.pool), Sealer: s.key, Activity: record, URL: s.address, Host: l.Addr().String(),
		Log: log, Cost: account.Cost{Memory: 8, Passes: 1, Threads: 1},
	})
	sites := site.New(site.Options{
		Store: pgsite.NewStore(s.pool), Records: pgroom.NewStore(s.pool), Rooms: rooms, Sealer: s.key, Activity: record,
		HostOwner: accounts.Hosts.Owner,
		Slug: func(ctx context.Context, org uuid.UUID) (string, error) {
			o, err := accounts.Organizations.Get(ctx, account.ServerActor(org))
			return o.Slug, err
		},
	})
	running := web.New(web.Options{Rooms: rooms, Control: counter, Keys: counter.Store.Keys, Activity: record,
		Accounts: accounts, Sites: sites, AdminToken: token, Log: log})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- running.Serve(ctx, l) }()
	s.stop = func() {
		s.Helper()
		cancel()
		if err := <-done; err != nil {
			s.Error(err)
		}
		accounts.Close()
		s.stop = func() {}
	}
}

// comeBack starts the server again.
func (s *server) comeBack() {
	s.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(s.Context(), "tcp", strings.TrimPrefix(s.address, "http://"))
	if err != nil {
		s.Fatal(err)
	}
	s.run(l)
}

// send sends a request and reads the response. It follows no redirects.
func send(t *testing.T, method, address, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

const page = "Accept: text/html"

// TestThroughTheRoom waits in a real line and buys in a shop built with Echo.
func TestThroughTheRoom(t *testing.T) {
	t.Parallel()
	queue := serve(t)
	shop := httptest.NewServer(nil)
	defer shop.Close()
	config := `{"slug":"sale","windows":[{"length":"200ms"}],"outflow":{"per_minute":6000},"targets":["` + shop.URL +
		`/"]}`
	if r, body := send(t, "POST", queue+"/v1/rooms", config, "Authorization: Bearer "+token,
		"Content-Type: application/json"); r.StatusCode != http.StatusCreated {
		t.Fatal(r.StatusCode, body)
	}
	site, err := rules.Parse([]byte(`{"version":1,"rooms":{"sale":{"url":"` + queue +
		`/r/sale"}},"rules":[{"name":"tickets","when":{"path":{"prefix":"/tickets"}},"action":"queue sale"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := connector.New(connector.Options{Site: site, Key: []byte(strings.Repeat("k", 32)), Log: servertest.Log(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	shop.Config.Handler = withEcho(c)

	r, _ := send(t, "GET", shop.URL+"/tickets/7?row=2", "", page)
	to, err := url.Parse(r.Header.Get("Location"))
	if err != nil || r.StatusCode != http.StatusFound || !strings.HasPrefix(to.String(), queue+"/r/sale?to=") {
		t.Fatalf("status %d to %q, %v", r.StatusCode, to, err)
	}
	ticket, location := wait(t, queue, to.Query())
	if !strings.HasPrefix(location, shop.URL+"/tickets/7?row=2&proofline_pass=ey") {
		t.Fatalf("the room redirects to %q", location)
	}
	r, _ = send(t, "GET", location, "", page)
	if got := r.Header.Get("Location"); r.StatusCode != http.StatusSeeOther || got != "/tickets/7?row=2" ||
		len(r.Cookies()) != 1 {
		t.Fatalf("entered with %d to %q", r.StatusCode, got)
	}
	cookie := "Cookie: " + r.Cookies()[0].Name + "=" + r.Cookies()[0].Value
	if _, body := send(t, "GET", shop.URL+"/tickets/7?row=2", "", page, cookie); body != "tickets for "+ticket {
		t.Errorf("the shop says %q", body)
	}
	if r, _ := send(t, "GET", location, "", page, "User-Agent: another"); !strings.HasPrefix(r.Header.Get("Location"),
		queue) || len(r.Cookies()) != 0 {
		t.Errorf("the pass works twice: %d %v", r.StatusCode, r.Header)
	}
	if r, body := send(t, "POST", shop.URL+"/tickets/bought", "", cookie); body != "thank you" ||
		r.Header.Get("Proofline-Command") != "" || r.Cookies()[0].MaxAge >= 0 {
		t.Errorf("bought: %q %v", body, r.Header)
	}
	_, pass, _ := strings.Cut(location, "proofline_pass=")
	eventually(t, "the session is released", func() bool {
		r, _ := send(t, "POST", queue+"/r/sale/sessions/touch", "", "Authorization: Bearer "+pass)
		return r.StatusCode == http.StatusGone
	})
	if r, _ := send(t, "GET", shop.URL+"/tickets/7", "", page, cookie); r.StatusCode != http.StatusFound {
		t.Errorf("after the visit: %d", r.StatusCode)
	}
}

// withEcho is a shop built with Echo. The connector wraps all of it, including Echo's router.
func withEcho(c *connector.Connector) http.Handler {
	e := echo.New()
	e.Pre(echo.WrapMiddleware(c.Middleware))
	e.GET("/tickets/:row", func(c echo.Context) error {
		v, _ := connector.VisitorOf(c.Request().Context())
		return c.String(http.StatusOK, "tickets for "+v.Ticket)
	})
	e.POST("/tickets/bought", func(c echo.Context) error {
		c.Response().Header().Set(connector.CommandHeader, "release")
		return c.String(http.StatusOK, "thank you")
	})
	return e
}

// wait joins the line with these query parameters, waits for the call, and returns the URL that the
// claim redirects to.
func wait(t *testing.T, queue string, link url.Values) (ticket, location string) {
	t.Helper()
	var secret [fairness.SecretSize]byte
	_, _ = rand.Read(secret[:])
	text := base64.RawURLEncoding.EncodeToString(secret[:])
	ticket = fairness.NewTicket(strings.TrimPrefix(queue, "http://")+"/r/sale", secret).String()
	if r, body := send(t, "POST", queue+"/r/sale/join", `{"ticket":"`+ticket+`"}`,
		"Content-Type: application/json"); r.StatusCode != http.StatusCreated {
		t.Fatal(r.StatusCode, body)
	}
	claim, err := json.Marshal(map[string]string{"secret": text, "to": link.Get("to"), "to_sig": link.Get("to_sig")})
	if err != nil {
		t.Fatal(err)
	}
	var told struct{ Location string }
	eventually(t, "the place is called", func() bool {
		r, body := send(t, "POST", queue+"/r/sale/claim", string(claim), "Content-Type: application/json")
		return r.StatusCode == http.StatusOK && json.Unmarshal([]byte(body), &told) == nil && told.Location != ""
	})
	return ticket, told.Location
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within three minutes: %s", what)
}
