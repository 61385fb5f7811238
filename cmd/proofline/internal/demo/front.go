package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/demo/shop"
)

// stopTimeout limits how long the proxy may take to stop.
const stopTimeout = 10 * time.Second

// front is a shop behind the real proxy, which runs as a separate process.
type front struct {
	room    *demoRoom
	shop    *shop.Shop
	url     string // URL of the proxy, for visitors
	metrics string // URL of the proxy's metrics
	http    *http.Client
	proxy   *exec.Cmd
	ended   chan error // receives the result of the proxy's process
}

func newFront(room *demoRoom, rows int) *front {
	f := &front{room: room, shop: shop.New(rows), http: visitorsHTTP()}
	f.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return f
}

// becomeTarget makes the shop a target of the room.
func (f *front) becomeTarget(ctx context.Context) error {
	targets := map[string]any{"targets": []string{f.url + "/", f.atLocalhost() + "/"}}
	_, err := f.room.manage(ctx, http.MethodPatch, "", targets)
	return err
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
		_, _ = io.Copy(io.Discard, out) // discards the rest of the output
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
		f.ended <- err // close receives it
		fail(fmt.Errorf("the proxy ended: %w", errors.Join(err, ctx.Err())))
	case <-ctx.Done():
	}
}

// close stops the proxy as its operator would, and returns the result of its process.
func (f *front) close() error {
	if f == nil || f.ended == nil {
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
