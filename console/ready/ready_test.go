package ready_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/issuers"
	"github.com/proofline/proofline/console/ready"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/meter"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

// TestChecks raises each fault that does not need a broken database, and checks that it is found and nothing else is.
func TestChecks(t *testing.T) {
	t.Parallel()
	rooms := servertest.Rooms(t, servertest.Pool(t, pgtest.URL(t)))
	if _, err := rooms.Create(t.Context(), room.Config{Slug: "soon", Beacon: "none"}); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(48 * time.Hour)
	if _, err := rooms.Create(t.Context(), room.Config{Slug: "later", Beacon: "none", Opens: &later, Starts: &later}); err != nil {
		t.Fatal(err)
	}
	site := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/livez" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(site.Close)
	client := site.Client()
	good := func() (ready.Options, *pglog.Conditions) {
		c := &pglog.Conditions{Version: 150008, Fsync: true, FullPages: true, IsArchiving: true, Standbys: 1, Synchronous: 1,
			MaxConnections: 100, MinWAL: 1 << 30}
		return ready.Options{
			Rooms: rooms, Meter: meter.New(), Data: t.TempDir(), PublicURL: strings.Replace(site.URL, "127.0.0.1", "example.com", 1),
			Conditions: func(context.Context) (pglog.Conditions, error) { return *c, nil },
			Role:       func(context.Context) error { return nil },
			HasOwner:   func(context.Context) (bool, error) { return true, nil },
			Recipients: func(context.Context, account.Actor) (int, error) { return 2, nil },
			Client:     client,
		}, c
	}
	// These are always found: the room, the missing beacon, the missing witnesses and the marks of this test's server.
	const usual = "beacon attention, marks failed, room soon attention, witnesses attention"
	for _, test := range []struct {
		name  string
		fault func(*ready.Options, *pglog.Conditions)
		want  string // what is found in addition
		says  string
	}{
		{"nothing", func(*ready.Options, *pglog.Conditions) {}, "", ""},
		{"fsync", func(_ *ready.Options, c *pglog.Conditions) { c.Fsync = false }, "database settings failed", "power cut"},
		{"connections", func(_ *ready.Options, c *pglog.Conditions) { c.MaxConnections = 16 }, "database settings failed", "max_connections is 16"},
		{"WAL", func(_ *ready.Options, c *pglog.Conditions) { c.MinWAL = 80 << 20 }, "database settings attention", "min_wal_size is 80 MB"},
		{"standby", func(_ *ready.Options, c *pglog.Conditions) { c.Synchronous = 0 }, "database settings attention", "failover"},
		{"archive", func(_ *ready.Options, c *pglog.Conditions) { c.IsArchiving = false }, "database settings attention", "archived"},
		{"role", func(o *ready.Options, _ *pglog.Conditions) {
			o.Role = func(context.Context) error { return &pglog.RoleError{} }
		}, "database role attention", "could change"},
		{"unreadable", func(o *ready.Options, _ *pglog.Conditions) {
			o.Conditions = func(context.Context) (pglog.Conditions, error) { return pglog.Conditions{}, errors.New("no answer") }
		}, "database settings failed", "no answer"},
		{"disk", func(o *ready.Options, _ *pglog.Conditions) { o.Data = "/nowhere" }, "disk attention", "unknown"},
		{"unreachable", func(o *ready.Options, _ *pglog.Conditions) { o.Client = &http.Client{Timeout: time.Nanosecond} },
			"address failed", "does not reach itself"},
		{"elsewhere", func(o *ready.Options, _ *pglog.Conditions) { o.PublicURL += "/queue" }, "address failed", "answers 404"},
		{"loopback", func(o *ready.Options, _ *pglog.Conditions) { o.PublicURL = site.URL }, "address attention", "Only this machine"},
		{"owner", func(o *ready.Options, _ *pglog.Conditions) {
			o.HasOwner = func(context.Context) (bool, error) { return false, nil }
		}, "accounts attention", "account"},
		{"issuer", func(o *ready.Options, _ *pglog.Conditions) {
			o.Issuers = func(r *room.Room) []issuers.Finding {
				return []issuers.Finding{{Method: "club", Name: "club.example.org", State: issuers.Away, Reason: "it hangs"},
					{Method: "phone", Name: "phone.example.org", State: issuers.Absent},
					{Method: "mail", Name: "The mail server", IsOwn: true, State: issuers.Present}}
			}
		}, "issuer of soon: club failed, issuer of soon: phone attention", "club.example.org has not answered"},
		{"alerts", func(o *ready.Options, _ *pglog.Conditions) {
			o.Recipients = func(context.Context, account.Actor) (int, error) { return 0, nil }
		}, "alerts attention", "Nobody gets alerts"},
	} {
		o, c := good()
		// The server of the test has a certificate for example.com, and listens on this machine.
		transport := client.Transport.(*http.Transport).Clone()
		transport.DialContext = dialTo(site.Listener.Addr().String())
		o.Client = &http.Client{Transport: transport, Timeout: 30 * time.Second}
		test.fault(&o, c)
		checks, err := ready.New(o).Checks(t.Context(), account.ServerActor(account.MainOrg))
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		found := map[string]bool{}
		for _, one := range checks {
			if one.State != ready.OK {
				found[one.Name+" "+string(one.State)] = true
				said += one.Text + "\n"
			}
			if (one.Do == "") != (one.State == ready.OK) {
				t.Errorf("%s: %+v", test.name, one)
			}
		}
		for _, want := range strings.Split(strings.TrimSuffix(usual+", "+test.want, ", "), ", ") {
			if !found[want] {
				t.Errorf("%s: no %q in %v", test.name, want, found)
			}
			delete(found, want)
		}
		if len(found) > 0 || !strings.Contains(said, test.says) {
			t.Errorf("%s: also %v\n%s", test.name, found, said)
		}
	}
}

// TestTenant checks that other organizations learn nothing about the server, and viewers nothing at all.
func TestTenant(t *testing.T) {
	t.Parallel()
	o := ready.Options{Rooms: servertest.Rooms(t, servertest.Pool(t, pgtest.URL(t))), Meter: meter.New(),
		Recipients: func(context.Context, account.Actor) (int, error) { return 0, nil }}
	checks, err := ready.New(o).Checks(t.Context(), account.Actor{Kind: account.Person, Scopes: account.Read | account.Operate})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range checks {
		names = append(names, c.Name)
	}
	if got := strings.Join(names, ", "); got != "database, clock, beacon, witnesses, alerts, rooms" {
		t.Error(got)
	}
	_, err = ready.New(o).Checks(t.Context(), account.Actor{Kind: account.Person, Scopes: account.Read})
	if !errors.Is(err, account.ErrForbidden) {
		t.Error(err)
	}
}

func dialTo(address string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}
