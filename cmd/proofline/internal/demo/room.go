package demo

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/internal/wire"
)

// demoRoom gives organizer and visitors access to the demo's room.
type demoRoom struct {
	wire.Room // the room as it was created

	organizer *api.Client
	visitor   *api.Client // client whose base is the room's URL
}

// makeRoom creates a room. If the data directory is from an earlier run, it takes the next free
// slug.
func makeRoom(ctx context.Context, s *server.Server, slug string, config func() map[string]any) (*demoRoom, error) {
	r := &demoRoom{organizer: &api.Client{Base: s.URL, Token: s.Token}}
	for n := 1; ; n++ {
		room := config()
		if room["slug"] = slug; n > 1 {
			room["slug"] = slug + "-" + strconv.Itoa(n)
		}
		err := r.call(ctx, http.MethodPost, "/v1/rooms", room, &r.Room)
		if p := (*api.Problem)(nil); errors.As(err, &p) && p.Status == http.StatusConflict {
			continue
		}
		r.visitor = &api.Client{Base: r.URL, HTTP: visitorsHTTP()}
		return r, err
	}
}

// visitorsHTTP returns an HTTP client that all visitors share.
func visitorsHTTP() *http.Client {
	const connections = 64
	t := &http.Transport{
		MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections, IdleConnTimeout: time.Minute,
	}
	return &http.Client{Transport: forwarding{t}, Timeout: 20 * time.Second}
}

// origin returns the name of the room's log.
func (r *demoRoom) origin() string {
	_, origin, _ := strings.Cut(r.URL, "://")
	return origin
}

// call sends a request to the management API; the body may be nil.
func (r *demoRoom) call(ctx context.Context, method, path string, body, result any) (err error) {
	var text []byte
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	_, err = r.organizer.Call(ctx, method, path, text, result)
	return err
}

// manage sends a request about the room to the management API, and returns the room.
func (r *demoRoom) manage(ctx context.Context, method, action string, body any) (room wire.Room, err error) {
	err = r.call(ctx, method, "/v1/rooms/"+r.Slug+action, body, &room)
	return room, err
}

// protect stores a shop's rules on the server, and returns the proxy's flags: it fetches the signed
// rules with a token, kept in dir, that allows nothing else.
func (r *demoRoom) protect(ctx context.Context, dir string) ([]string, error) {
	var site wire.Site
	var key struct{ Key string }
	var token struct{ Token string }
	rules := map[string]any{
		"version": 1,
		"hosts":   []string{"127.0.0.1", "localhost"},
		"rooms":   map[string]any{"sale": map[string]string{"url": r.URL}},
		"rules": []any{map[string]any{
			"name": "tickets", "when": map[string]any{"path": map[string]string{"prefix": "/tickets"}},
			"action": "queue sale",
		}},
	}
	err := r.call(ctx, http.MethodPost, "/v1/sites", map[string]any{"name": r.Slug, "rules": rules}, &site)
	if err == nil {
		request := map[string]any{"name": "proxy of " + r.Slug, "scopes": []string{"connect"}}
		err = r.call(ctx, http.MethodPost, "/v1/tokens", request, &token)
	}
	if err == nil {
		err = r.call(ctx, http.MethodGet, "/v1/site-key", nil, &key)
	}
	file := filepath.Join(dir, r.Slug+".connect-token")
	if err == nil {
		err = os.WriteFile(file, []byte(token.Token+"\n"), 0o600)
	}
	return []string{"proxy", "--site", site.URL, "--site-key", key.Key, "--token-file", file}, err
}
