package webhook

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/invalid"
)

func isInvalid(err error) bool {
	_, ok := errors.AsType[*invalid.Error](err)
	return ok
}

// fields returns the names of the fields with problems.
func fields(err error) string {
	wrong, ok := errors.AsType[*invalid.Error](err)
	if !ok {
		return fmt.Sprint(err)
	}
	var names []string
	for _, p := range wrong.Problems {
		names = append(names, p.Field)
	}
	return strings.Join(names, " ")
}

// TestEndpointProblems checks that all problems are reported at once.
func TestEndpointProblems(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct {
		config EndpointConfig
		want   string
	}{
		{EndpointConfig{}, "url"},
		{EndpointConfig{URL: "https://example.com", Events: []EventKind{"room.exploded", RoomEnded, "alert"}},
			"events events"},
		{EndpointConfig{URL: "https://example.com", Rooms: []string{"ok", "Not OK"}}, "rooms"},
		{EndpointConfig{URL: "https://example.com", Rooms: many(101)}, "rooms"},
		{EndpointConfig{URL: "x", Description: strings.Repeat("é", 201)}, "url description"},
		{EndpointConfig{URL: "https://example.com", Description: "two\nlines"}, "description"},
	} {
		if _, _, err := b.Endpoints.Create(t.Context(), operator, c.config); fields(err) != c.want {
			t.Errorf("%+v: %v, want %s", c.config, err, c.want)
		}
	}
	e, _ := b.endpoint("https://example.com")
	bad := "ftp://example.com"
	if _, err := b.Endpoints.Update(t.Context(), operator, e.ID, EndpointChange{URL: &bad}); fields(err) != "url" {
		t.Errorf("update: %v", err)
	}
	for range MaxEndpoints - 1 {
		b.endpoint("https://example.com")
	}
	if _, _, err := b.Endpoints.Create(t.Context(), operator,
		EndpointConfig{URL: "https://example.com"}); !account.IsLimit(err) {
		t.Errorf("one too many: %v", err)
	}
	if err := b.Endpoints.Delete(t.Context(), operator, e.ID); err != nil {
		t.Fatal(err)
	}
	b.endpoint("https://example.com")
}

func many(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("room-%d", i))
	}
	return list
}

// TestEndpoints checks changes of endpoints and their activity log entries. These must not contain
// secrets, nor the path of a URL, which often is a secret, because all members of the organization
// can read the log.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e, secret, err := b.Endpoints.Create(t.Context(), operator, EndpointConfig{
		URL: " https://example.com/a ", Events: []EventKind{RoomEnded, Admitted, RoomEnded}, Rooms: []string{"b", "a"},
		Description: " Shop ",
	})
	if err != nil || !strings.HasPrefix(secret, "whsec_") || len(secret) != 50 {
		t.Fatal(secret, err)
	}
	if e.URL != "https://example.com/a" || fmt.Sprintln(e.Events, e.Rooms,
		e.Description) != "[room.admitted room.ended] [a b] Shop\n" || !e.Enabled {
		t.Errorf("created %+v", e)
	}
	url, no, none := "https://example.com/b", false, []EventKind{}
	changed, err := b.Endpoints.Update(t.Context(), operator, e.ID,
		EndpointChange{URL: &url, Enabled: &no, Events: &none})
	if err != nil || changed.URL != url || changed.Enabled || changed.Disabled != DisabledByHand ||
		len(changed.Events) != 0 || changed.Description != "Shop" {
		t.Errorf("changed %+v, %v", changed, err)
	}
	rotated, err := b.Endpoints.RotateSecret(t.Context(), operator, e.ID)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := b.Endpoints.List(t.Context(), operator); err != nil || len(list) != 1 || list[0].URL != url ||
		list[0].FormerUntil == nil {
		t.Errorf("list %+v, %v", list, err)
	}
	if err := b.Endpoints.Delete(t.Context(), operator, e.ID); err != nil {
		t.Fatal(err)
	}
	want := "[{webhook.created https://example.com} {webhook.changed https://example.com} {webhook.rotated https://example.com} {webhook.deleted https://example.com}]"
	if got := fmt.Sprint(b.activity.list); got != want {
		t.Errorf("activity log %s", got)
	}
	if strings.Contains(b.activity.text, secret) || strings.Contains(b.activity.text, rotated) ||
		strings.Contains(b.activity.text, "whsec") {
		t.Error("a secret is in the activity log")
	}
}

// TestPermission checks that viewers are refused, and that endpoints of other organizations are
// invisible.
func TestPermission(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e, _ := b.endpoint("https://example.com")
	id := b.ping(e)
	ctx, url := t.Context(), "https://example.com/b"
	for name, do := range map[string]func(a account.Actor) error{
		"endpoint": func(a account.Actor) error { _, err := b.Endpoints.Get(ctx, a, e.ID); return err },
		"update": func(a account.Actor) error {
			_, err := b.Endpoints.Update(ctx, a, e.ID, EndpointChange{URL: &url})
			return err
		},
		"delete":    func(a account.Actor) error { return b.Endpoints.Delete(ctx, a, e.ID) },
		"rotate":    func(a account.Actor) error { _, err := b.Endpoints.RotateSecret(ctx, a, e.ID); return err },
		"ping":      func(a account.Actor) error { _, err := b.Endpoints.Ping(ctx, a, e.ID); return err },
		"delivery":  func(a account.Actor) error { _, err := b.Deliveries.Get(ctx, a, id); return err },
		"redeliver": func(a account.Actor) error { return b.Deliveries.Redeliver(ctx, a, id) },
		"test":      func(a account.Actor) error { return b.Alerts.Test(ctx, a) },
	} {
		if err := do(viewer); !errors.Is(err, account.ErrForbidden) {
			t.Errorf("%s by a viewer: %v", name, err)
		}
		if err := do(account.Actor{}); !errors.Is(err, account.ErrForbidden) {
			t.Errorf("%s by the zero actor: %v", name, err)
		}
		if err := do(stranger); !errors.Is(err, account.ErrNotFound) {
			t.Errorf("%s by another organization: %v", name, err)
		}
	}
	for name, do := range map[string]func(a account.Actor) (int, error){
		"endpoints": func(a account.Actor) (int, error) { l, err := b.Endpoints.List(ctx, a); return len(l), err },
		"deliveries": func(a account.Actor) (int, error) {
			p, err := b.Deliveries.List(ctx, a, DeliveryFilter{})
			return len(p.Deliveries), err
		},
		"alerts": func(a account.Actor) (int, error) { s, err := b.Alerts.Settings(ctx, a); return len(s.Emails), err },
	} {
		if _, err := do(viewer); !errors.Is(err, account.ErrForbidden) {
			t.Errorf("%s by a viewer: %v", name, err)
		}
		if n, err := do(stranger); err != nil || n != 0 {
			t.Errorf("%s by another organization: %d, %v", name, n, err)
		}
	}
	if err := b.Alerts.SetSettings(ctx, viewer, AlertSettings{}); !errors.Is(err, account.ErrForbidden) {
		t.Errorf("set alerts by a viewer: %v", err)
	}
	if err := b.Alerts.SetSettings(ctx, stranger, AlertSettings{Endpoints: []uuid.UUID{e.ID}}); fields(err) != "endpoints" {
		t.Errorf("another organization's endpoint: %v", err)
	}
	if now, err := b.Endpoints.Get(ctx, operator, e.ID); err != nil || now.URL != "https://example.com" ||
		now.FormerUntil != nil {
		t.Errorf("afterwards %+v, %v", now, err)
	}
}
