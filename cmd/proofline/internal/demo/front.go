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
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/demo/shop"
)

// stopTime is how long the proxy may take to stop.
const stopTime = 10 * time.Second

// front is a shop with the real proxy in front of it, as a process of its own.
type front struct {
	shop  *shop.Shop
	url   string // of the proxy: where visitors go
	http  *http.Client
	proxy *exec.Cmd
	ended chan error // gets how the proxy ended
	told  sync.Once  // of the first who bought
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
	args, err := d.protect()
	if err != nil {
		return fmt.Errorf("protect shop: %w", err)
	}
	args = append(args, "--to", site, "--listen", "127.0.0.1:0", "--key", filepath.Join(d.dir, "shop-key"), "--log-level", "warn")
	if err := f.start(ctx, d.Program, args, d.Complaints); err != nil {
		return fmt.Errorf("start proxy: %w", err)
	}
	targets, err := json.Marshal(map[string]any{"targets": []string{f.url + "/"}})
	if err != nil {
		return err
	}
	_, err = d.look(ctx, http.MethodPatch, "", string(targets))
	return err
}

// protect writes the rules of the shop, and returns the flags that name them.
func (d *demo) protect() ([]string, error) {
	rules, err := json.Marshal(map[string]any{
		"version": 1,
		"rooms":   map[string]any{"sale": map[string]string{"url": d.room.URL}},
		"rules":   []any{map[string]any{"name": "tickets", "when": map[string]any{"path": map[string]string{"prefix": "/tickets"}}, "action": "queue sale"}},
	})
	if err != nil {
		return nil, err
	}
	name := filepath.Join(d.dir, d.room.Slug+".rules.json")
	return []string{"proxy", "--rules", name}, os.WriteFile(name, rules, 0o600)
}

// start runs the proxy and waits until it listens.
func (f *front) start(ctx context.Context, program string, args []string, complaints io.Writer) error {
	f.proxy = exec.CommandContext(context.WithoutCancel(ctx), program, args...) //nolint:gosec // this very program
	f.proxy.Stderr = complaints
	out, err := f.proxy.StdoutPipe()
	if err == nil {
		err = f.proxy.Start()
	}
	if err != nil {
		return err
	}
	f.ended = make(chan error, 1)
	lines := bufio.NewScanner(out)
	for f.url == "" && lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			f.url = url
		}
	}
	go func() {
		_, _ = io.Copy(io.Discard, out) // until it ends
		f.ended <- f.proxy.Wait()
	}()
	if f.url == "" {
		return fmt.Errorf("it does not listen: %w", <-f.ended)
	}
	return nil
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

// close stops the proxy, as its operator would.
func (f *front) close() {
	if f.ended == nil {
		return
	}
	_ = f.proxy.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-f.ended:
	case <-time.After(stopTime):
		_ = f.proxy.Process.Kill()
		<-f.ended
	}
}
