package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// server is a running process that listens.
type server struct {
	ctx  context.Context
	cmd  *exec.Cmd
	addr string // host:port
	dir  string // data directory of Proofline's server; empty: another program

	metrics chan string // receives the URL of Proofline's metrics, if it serves them
}

// url returns the URL of a path on the server.
func (s *server) url(path string) string { return "http://" + s.addr + path }

// read reads the server's output until it exits.
func (s *server) read(lines *bufio.Scanner) {
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "metrics on "); ok {
			s.metrics <- url
		}
	}
}

// answer is a response of Proofline's server that the baseline repeats.
type answer struct {
	Header http.Header
	Size   int
}

// probe sends one request to Proofline's server.
func (s *server) probe(method, path, body string) (answer, error) {
	url := s.url(path)
	req, err := http.NewRequestWithContext(s.ctx, method, url, strings.NewReader(body))
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

// serveBare is the baseline: Echo with one handler, without middleware, limits or database. Its
// responses have the same bytes as Proofline's, headers included.
func serveBare(text string) error {
	var a answer
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return err
	}
	a.Header.Set("Content-Length", strconv.Itoa(a.Size))
	delete(a.Header, "Date") // net/http writes it
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
func (s *server) create(config map[string]any) error {
	token, err := os.ReadFile(filepath.Join(s.dir, "admin-token"))
	if err != nil {
		return err
	}
	body, err := json.Marshal(config)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.url("/v1/rooms"), bytes.NewReader(body))
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
