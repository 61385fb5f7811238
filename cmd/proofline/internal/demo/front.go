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

// stopTimeout bounds how long the proxy may take to stop.
const stopTimeout = 10 * time.Second

// front is a shop and the real proxy in front of it, which is a process of its own.
type front struct {
	shop    *shop.Shop
	url     string // of the proxy, for visitors
	metrics string // URL of the proxy's metrics
	http    *http.Client
	proxy   *exec.Cmd
	ended   chan error // receives the result of the proxy's process
	told    sync.Once  // narrates the first purchase
}

// openShop opens a shop with rows of seats behind the proxy, and makes it a target
// of the room.
func (d *demo) openShop(ctx context.Context, rows int) error {
	f := &d.front
	f.shop = shop.New(rows)
	f.http = visitorsHTTP()
	f.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	site, err := d.thirdParties.listen(f.shop)
	if err != nil {
		return fmt.Errorf("open shop: %w", err)
	}
	args, err := d.protect(ctx)
	if err != nil {
		return fmt.Errorf("protect shop: %w", err)
	}
	args = append(args, "--to", site, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0",
		"--key", filepath.Join(d.dir, "shop-key"), "--log-level", "warn")
	if err := f.start(ctx, d.Program, args, d.ProxyLog); err != nil {
		return fmt.Errorf("start proxy: %w", err)
	}
	targets, err := json.Marshal(map[string]any{"targets": []string{f.url + "/", f.atLocalhost() + "/"}})
	if err != nil {
		return err
	}
	_, err = d.manage(ctx, http.MethodPatch, "", string(targets))
	return err
}

// protect stores the shop's rules on the server, and returns the proxy's flags: it
// fetches the signed rules with a token that allows nothing else.
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
			"rules": []any{map[string]any{
				"name": "tickets", "when": map[string]any{"path": map[string]string{"prefix": "/tickets"}}, "action": "queue sale",
			}},
		}}, &site},
		{http.MethodPost, "/v1/tokens", map[string]any{
			"name": "proxy of " + d.room.Slug, "scopes": []string{"connect"},
		}, &token},
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

// atLocalhost returns the proxy's URL with localhost as its host: browsers accept
// the proxy's secure cookie there without TLS.
func (f *front) atLocalhost() string { return strings.Replace(f.url, "127.0.0.1", "localhost", 1) }

// start runs the proxy and waits until it listens.
func (f *front) start(ctx context.Context, program string, args []string, stderr io.Writer) error {
	f.proxy = exec.CommandContext(context.WithoutCancel(ctx), program, args...) //nolint:gosec // this very program
	f.proxy.Env = slices.DeleteFunc(os.Environ(), func(line string) bool {
		return strings.HasPrefix(line, "PROOFLINE_") // settings of other servers and proxies
	})
	f.proxy.Stderr = stderr
	f.proxy.SysProcAttr = diesWithParent()
	out, err := f.proxy.StdoutPipe()
	if err != nil {
		return err
	}
	started, ended := make(chan error, 1), make(chan error, 1)
	read := make(chan struct{}) // closed when out has ended
	go func() {
		runtime.LockOSThread() // see diesWithParent
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
	f.readAddresses(out)
	go func() {
		_, _ = io.Copy(io.Discard, out) // until it ends
		close(read)
	}()
	if f.url == "" {
		return fmt.Errorf("it ended before it listened: %w", <-f.ended)
	}
	return nil
}

// readAddresses reads the proxy's output up to its address.
func (f *front) readAddresses(out io.Reader) {
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

// watch calls fail when the proxy ends before the context does.
func (f *front) watch(ctx context.Context, fail func(error)) {
	select {
	case err := <-f.ended:
		f.ended <- err // for close
		fail(fmt.Errorf("the proxy ended: %w", errors.Join(err, ctx.Err())))
	case <-ctx.Done():
	}
}

// close stops the proxy as its operator would, and returns the result of its process.
func (f *front) close() error {
	if f.ended == nil {
		return nil
	}
	_ = f.proxy.Process.Signal(syscall.SIGTERM) // it may have ended
	var err error
	select {
	case err = <-f.ended:
	case <-time.After(stopTimeout):
		_ = f.proxy.Process.Kill()
		err = errors.Join(fmt.Errorf("still running after %s", stopTimeout), <-f.ended)
	}
	if err != nil {
		return fmt.Errorf("stop proxy: %w", err)
	}
	return nil
}
