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
	"strings"
	"syscall"
	"time"

	"github.com/labstack/echo/v4"
)

// build builds the product's binaries.
func (b *bench) build() error {
	b.say("building")
	cmd := exec.CommandContext(b.ctx, "go", "build", "-o", b.bin, "./cmd/...")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build the binaries (run this from the top of the repository): %w", err)
	}
	return nil
}

// server is a running process that listens.
type server struct {
	cmd  *exec.Cmd
	addr string // host:port
	dir  string // data directory of the product's server

	setup chan string // receives the link that creates the first account
}

// start starts a program that prints its address, http://host:port, to standard output.
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
	s := &server{cmd: cmd, dir: dir, setup: make(chan string, 1)}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, addr, ok := strings.Cut(lines.Text(), "http://"); ok {
			s.addr = strings.TrimSpace(addr)
			go s.read(lines)
			return s, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("%s exited before it was listening", program), cmd.Wait())
}

// read reads the server's output until it exits.
func (s *server) read(lines *bufio.Scanner) {
	for lines.Scan() {
		for word := range strings.FieldsSeq(lines.Text()) {
			if strings.Contains(word, setupPath) {
				s.setup <- word
			}
		}
	}
}

func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return s.cmd.Wait()
}

// product starts the product's server on a data directory, with its private PostgreSQL.
func (b *bench) product(name string) (*server, error) {
	dir := filepath.Join(b.dir, name)
	return b.start(dir, filepath.Join(b.bin, "proofline"), "serve", "--addr", "127.0.0.1:0", "--data", dir,
		"--log-level", "warn", "--beacon-relays", "none", "--limit-exempt", "127.0.0.0/8")
}

// answer is a response of the product that the baseline repeats.
type answer struct {
	Header http.Header
	Size   int
}

// probe sends one request to the product.
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

// bare starts the baseline, which sends the same response to every request.
func (b *bench) bare(a answer) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	return b.start("", self, "bare", string(text))
}

// serveBare is the baseline: Echo with one handler, without middleware, limits or database. Its
// responses have the same bytes as the product's, headers included.
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
