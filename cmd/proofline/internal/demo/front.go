package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/cmd/proofline/internal/demo/shop"
)

// stopTime is how long the proxy may take to stop.
const stopTime = 10 * time.Second

// front is a shop with the real proxy in front of it, as a process of its own.
type front struct {
	shop    *shop.Shop
	url     string // of the proxy: where visitors go
	metrics string // where it says what it counted
	http    *http.Client
	proxy   *exec.Cmd
	ended   chan error // gets how the proxy ended
	told    sync.Once  // of the first who bought
}

// openShop opens a shop with so many rows of seats, puts the proxy in front of
// it, and has the room lead there.
func (d *demo) openShop(ctx context.Context, rows int) error {
	f := &d.front
	f.shop = shop.New(rows)
	f.http = visitorsHTTP()
	f.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	site, err := d.outsiders.listen(f.shop)
	if err != nil {
		return fmt.Errorf("open shop: %w", err)
	}
	args, err := d.protect(ctx)
	if err != nil {
		return fmt.Errorf("protect shop: %w", err)
	}
	args = append(args, "--to", site, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--key", filepath.Join(d.dir, "shop-key"), "--log-level", "warn")
	if err := f.start(ctx, d.Program, args, d.Complaints); err != nil {
		return fmt.Errorf("start proxy: %w", err)
	}
	targets, err := json.Marshal(map[string]any{"targets": []string{f.url + "/", f.atLocalhost() + "/"}})
	if err != nil {
		return err
	}
	_, err = d.look(ctx, http.MethodPatch, "", string(targets))
	return err
}

// protect has the server keep the rules of the shop, and returns the flags
// with which a proxy takes them: signed, and by a token that is good for
// nothing else.
func (d *demo) protect(ctx context.Context) ([]string, error) {
	var site api.Site
	var key struct{ Key string }
	var token struct{ Token string }
	for _, step := range []struct {
		method, path string
		body, into   any
	}{
		{http.MethodPost, "/v1/sites", map[string]any{"name": d.room.Slug, "rules": map[string]any{
			"version": 1,
			"hosts":   []string{"127.0.0.1", "localhost"},
			"rooms":   map[string]any{"sale": map[string]string{"url": d.room.URL}},
			"rules":   []any{map[string]any{"name": "tickets", "when": map[string]any{"path": map[string]string{"prefix": "/tickets"}}, "action": "queue sale"}},
		}}, &site},
		{http.MethodPost, "/v1/tokens", map[string]any{"name": "proxy of " + d.room.Slug, "scopes": []string{"connect"}}, &token},
		{http.MethodGet, "/v1/site-key", nil, &key},
	} {
		var body []byte
		var err error
		if step.body != nil {
			if body, err = json.Marshal(step.body); err != nil {
				return nil, err
			}
		}
		if _, err := d.organizer.Call(ctx, step.method, step.path, body, step.into); err != nil {
			return nil, err
		}
	}
	file := filepath.Join(d.dir, d.room.Slug+".connect-token")
	if err := os.WriteFile(file, []byte(token.Token+"\n"), 0o600); err != nil {
		return nil, err
	}
	return []string{"proxy", "--site", site.URL, "--site-key", key.Key, "--token-file", file}, nil
}

// atLocalhost is the address under which browsers keep the proxy's cookie,
// although it has no TLS.
func (f *front) atLocalhost() string { return strings.Replace(f.url, "127.0.0.1", "localhost", 1) }

// start runs the proxy and waits until it listens.
func (f *front) start(ctx context.Context, program string, args []string, complaints io.Writer) error {
	f.proxy = exec.CommandContext(context.WithoutCancel(ctx), program, args...)                                            //nolint:gosec // this very program
	f.proxy.Env = slices.DeleteFunc(os.Environ(), func(line string) bool { return strings.HasPrefix(line, "PROOFLINE_") }) // which are for others
	f.proxy.Stderr = complaints
	f.proxy.SysProcAttr = dies()
	out, err := f.proxy.StdoutPipe()
	if err != nil {
		return err
	}
	started, ended := make(chan error, 1), make(chan error, 1)
	read := make(chan struct{}) // closed when out has ended
	go func() {
		runtime.LockOSThread() // see dies
		defer runtime.UnlockOSThread()
		err := f.proxy.Start()
		if started <- err; err != nil {
			return
		}
		<-read
		ended <- f.proxy.Wait()
	}()
	if err := <-started; err != nil {
		return err
	}
	f.ended = ended
	f.listens(out)
	go func() {
		_, _ = io.Copy(io.Discard, out) // until it ends
		close(read)
	}()
	if f.url == "" {
		return fmt.Errorf("it does not listen: %w", <-f.ended)
	}
	return nil
}

// listens reads what the proxy prints, until it listens.
func (f *front) listens(out io.Reader) {
	lines := bufio.NewScanner(out)
	for f.url == "" && lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			f.url = url
		}
		if url, ok := strings.CutPrefix(lines.Text(), "metrics on "); ok {
			f.metrics = url
		}
	}
}

// watch fails when the proxy ends before the context does.
func (f *front) watch(ctx context.Context, fail func(error)) {
	select {
	case err := <-f.ended:
		f.ended <- err // for close
		fail(fmt.Errorf("the proxy died: %w", errors.Join(err, ctx.Err())))
	case <-ctx.Done():
	}
}

// close stops the proxy, as its operator would, and returns how it ended.
func (f *front) close() error {
	if f.ended == nil {
		return nil
	}
	_ = f.proxy.Process.Signal(syscall.SIGTERM) // it may have ended
	var err error
	select {
	case err = <-f.ended:
	case <-time.After(stopTime):
		_ = f.proxy.Process.Kill()
		err = errors.Join(fmt.Errorf("still there after %s", stopTime), <-f.ended)
	}
	if err != nil {
		return fmt.Errorf("stop proxy: %w", err)
	}
	return nil
}
