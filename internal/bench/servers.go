package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/labstack/echo/v4"
)

// server is a running process that listens.
type server struct {
	cmd  *exec.Cmd
	addr string // host:port
	dir  string // data directory of Proofline's server; empty: another program

	metrics chan string // receives the URL of Proofline's metrics, if it serves them
}

// start starts a program that prints its address, http://host:port, to standard output. It runs
// until the end of the measurement at the latest.
func (b *bench) start(dir, program string, args ...string) (*server, error) {
	cmd := exec.CommandContext(b.ctx, program, args...)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, dir: dir, metrics: make(chan string, 1)}
	b.running = append(b.running, s)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, addr, ok := strings.Cut(lines.Text(), "http://"); ok {
			s.addr = strings.TrimSpace(addr)
			go s.read(lines)
			return s, nil
		}
	}
	b.running = b.running[:len(b.running)-1]
	return nil, errors.Join(fmt.Errorf("%s exited before it was listening", program), cmd.Wait())
}

// read reads the server's output until it exits.
func (s *server) read(lines *bufio.Scanner) {
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "metrics on "); ok {
			s.metrics <- url
		}
	}
}

// stop stops a server before the end of the measurement.
func (b *bench) stop(s *server) error {
	b.running = slices.DeleteFunc(b.running, func(other *server) bool { return other == s })
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := s.cmd.Wait(); s.dir != "" { // the signal ends a helper process, which is no error
		return err
	}
	return nil
}

// discard stops a server and removes its data.
func (b *bench) discard(s *server) error {
	return errors.Join(b.stop(s), os.RemoveAll(s.dir))
}

// stopAll stops all servers, the latest first.
func (b *bench) stopAll() {
	for len(b.running) > 0 {
		s := b.running[len(b.running)-1]
		if err := b.stop(s); err != nil {
			b.say("stop %s: %v", s.cmd.Path, err)
		}
	}
}

// product starts a version's server on a data directory, with its private PostgreSQL.
func (b *bench) product(v version, name string, args ...string) (*server, error) {
	dir := filepath.Join(b.dir, v.name+"-"+name)
	return b.start(dir, filepath.Join(v.bin, "proofline"), append([]string{"serve", "--addr", "127.0.0.1:0",
		"--data", dir, "--log-level", "error", "--beacon-relays", "none", "--limit-exempt", "127.0.0.0/8"}, args...)...)
}

// answer is a response of Proofline's server that the baseline repeats.
type answer struct {
	Header http.Header
	Size   int
}

// probe sends one request to Proofline's server.
func (b *bench) probe(method, url, body string) (answer, error) {
	req, err := http.NewRequestWithContext(b.ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, text)
	}
	return answer{resp.Header, len(text)}, err
}

// bareOf starts the baseline, which sends one response to every request: as long as Proofline's
// response to the given one, and with the same header.
func (b *bench) bareOf(method string, s *server, path, body string) (*server, error) {
	a, err := b.probe(method, "http://"+s.addr+path, body)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	return b.self("bare", string(text))
}

// self starts this program as one of its helper servers.
func (b *bench) self(args ...string) (*server, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return b.start("", program, args...)
}

// serveBare is the baseline: Echo with one handler, without middleware, limits or database. Its
// responses have the same bytes as Proofline's, headers included.
func serveBare(text string) error {
	var a answer
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return err
	}
	delete(a.Header, "Content-Length") // net/http writes these two
	delete(a.Header, "Date")
	body := bytes.Repeat([]byte{'x'}, a.Size)
	kind := a.Header.Get("Content-Type")
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	answer := func(c echo.Context) error {
		header := c.Response().Header()
		for name, values := range a.Header {
			header[name] = values
		}
		return c.Blob(http.StatusOK, kind, body)
	}
	e.GET("/*", answer)
	e.POST("/*", func(c echo.Context) error {
		if _, err := io.Copy(io.Discard, c.Request().Body); err != nil {
			return err
		}
		return answer(c)
	})
	go func() {
		for e.ListenerAddr() == nil {
			time.Sleep(time.Millisecond)
		}
		fmt.Println("http://" + e.ListenerAddr().String())
	}()
	return e.Start("127.0.0.1:0")
}

// create creates a room through the management API.
func (s *server) create(ctx context.Context, config map[string]any) error {
	token, err := os.ReadFile(filepath.Join(s.dir, "admin-token"))
	if err != nil {
		return err
	}
	body, err := json.Marshal(config)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.addr+"/v1/rooms", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("create room: %s: %s", resp.Status, text)
	}
	return nil
}
