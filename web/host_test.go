package web

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/activity/pgactivity"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/control/pgcontrol"
	"github.com/proofline/proofline/internal/testlog"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
)

// dns is a resolver with fixed TXT records.
type dns map[string]string

// LookupTXT implements account.Resolver.
func (d dns) LookupTXT(_ context.Context, name string) ([]string, error) {
	return []string{d[strings.TrimSuffix(name, ".")]}, nil
}

// TestCustomHosts checks that an organization's host serves only its rooms, and that pages redirect
// to it.
func TestCustomHosts(t *testing.T) {
	t.Parallel()
	rooms, pool := newRooms(t)
	log := testlog.New(t, slog.LevelInfo)
	names := dns{}
	accounts := account.New(account.Options{
		Store: pgaccount.NewStore(pool), Sealer: rooms.MasterKey, URL: publicURL, Host: "example.com", Resolver: names,
		Log: log,
	})
	owns := func(ctx context.Context, org uuid.UUID, host string) (bool, error) {
		owner, ok, err := accounts.Hosts.Owner(ctx, host)
		return ok && owner == org, err
	}
	d := control.New(control.Options{Rooms: rooms, Store: pgcontrol.NewStore(pool), Records: pgroom.NewStore(pool), OwnsHost: owns, Log: log,
		Activity: activity.New(activity.Options{
			Store: pgactivity.NewStore(pool), IsRefusal: control.IsRefusal, Log: log,
		}),
	})
	s := newSite(t, func(o *Options) { o.Rooms, o.Control, o.Accounts = rooms, d, accounts })

	server := account.ServerActor(account.MainOrg)
	other, err := accounts.Organizations.Create(t.Context(), server, "other", "Other")
	if err != nil {
		t.Fatal(err)
	}
	for org, name := range map[uuid.UUID]string{account.MainOrg: "queue.first.example", other.ID: "queue.second.example"} {
		host, err := accounts.Hosts.Add(t.Context(), account.ServerActor(org), name)
		if err != nil {
			t.Fatal(err)
		}
		names[host.Record] = host.Token
		if err := accounts.Hosts.Verify(t.Context(), account.ServerActor(org), name); err != nil {
			t.Fatal(err)
		}
	}
	for slug, place := range map[string]control.Place{"plain": {}, "own": {Host: "queue.first.example"}} {
		if _, err := d.Create(t.Context(), server, room.Config{Slug: slug}, place); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Create(t.Context(), account.ServerActor(other.ID), room.Config{Slug: "stolen"}, control.Place{Host: "queue.first.example"}); err == nil {
		t.Error("a room is published under the host of another organization")
	}
	for _, test := range []struct {
		host, path string
		want       int
	}{
		{"example.com", "/r/plain/state", http.StatusOK},
		{"127.0.0.1:8080", "/r/plain/state", http.StatusOK}, // behind a proxy that does not forward the host
		{"queue.first.example", "/r/plain/state", http.StatusNotFound},
		{"queue.first.example", "/r/own/state", http.StatusOK},
		{"QUEUE.first.example.:443", "/r/own/state", http.StatusOK},
		{"queue.first.example", "/r/own", http.StatusOK},
		{"queue.first.example", "/rooms/checkpoint", http.StatusOK}, // auditors look for it where the room is
		{"queue.second.example", "/r/own/state", http.StatusNotFound},
		{"queue.second.example", "/r/own", http.StatusNotFound},
		{"queue.second.example", "/r/plain/checkpoint", http.StatusNotFound},
		{"example.com", "/r/own/checkpoint", http.StatusOK}, // an auditor's old address
		{"example.com", "/r/own", http.StatusTemporaryRedirect},
		{"example.com", "/r/own/check?lang=de", http.StatusTemporaryRedirect},
		{"queue.first.example", "/console/sign-in", http.StatusSeeOther},
		{"queue.first.example", "/console", http.StatusSeeOther},
	} {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+test.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		q.Host = test.host
		q.Header.Set("Accept", "text/html")
		response, err := plain.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != test.want {
			t.Errorf("%s%s: status %d, want %d", test.host, test.path, response.StatusCode, test.want)
		}
		to := response.Header.Get("Location")
		if test.want == http.StatusTemporaryRedirect && to != "https://queue.first.example"+test.path {
			t.Errorf("%s%s leads to %s", test.host, test.path, to)
		}
		if strings.HasPrefix(test.path, "/console") && to != publicURL+"/console" {
			t.Errorf("%s%s leads to %s", test.host, test.path, to)
		}
	}

	// Another organization proves that the host is its own now: earlier rooms are served at the server's
	// address, and nowhere else.
	host, err := accounts.Hosts.Add(t.Context(), account.ServerActor(other.ID), "queue.first.example")
	if err != nil {
		t.Fatal(err)
	}
	names[host.Record] = host.Token
	if err := accounts.Hosts.Verify(t.Context(), account.ServerActor(other.ID), host.Host); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]int{"queue.first.example /r/own/state": http.StatusNotFound, "queue.first.example /r/own": http.StatusNotFound, "example.com /r/own": http.StatusOK, "example.com /r/own/checkpoint": http.StatusOK} {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		q.Host, q.URL.Path, _ = strings.Cut(address, " ")
		response, err := plain.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s when the host is another organization's: %d, want %d", address, response.StatusCode, want)
		}
	}
}
