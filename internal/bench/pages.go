package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// pageAssets matches the assets that a browser loads immediately for a page.
var pageAssets = regexp.MustCompile(`(?:src|href)="(/assets/[^"]+|/r/[^"]+/(?:brand\.css|logo)[^"]*)"`)

// firstLoad measures what a phone downloads to show the page of a line.
func (b *bench) firstLoad() error {
	s, err := b.product("pages")
	if err != nil {
		return err
	}
	defer func() { _ = s.stop() }()
	if err := s.create(b.ctx, dayRoom("pages")); err != nil {
		return err
	}
	page, bytesLoaded, err := b.load("http://" + s.addr + "/r/pages")
	if err != nil {
		return err
	}
	requests := 1
	for _, found := range pageAssets.FindAllSubmatch(page, -1) {
		_, size, err := b.load("http://" + s.addr + string(found[1]))
		if err != nil {
			return err
		}
		bytesLoaded += size
		requests++
	}
	b.add(bytesLoaded < 60_000 && requests > 2, "first load of the page of a line",
		fmt.Sprintf("%.1f kB in %d requests", float64(bytesLoaded)/1000, requests), "under 60 kB")
	return nil
}

// load gets a resource like a browser, and returns it with the size of the response's body on the
// wire.
func (b *bench) load(url string) (body []byte, size int, err error) {
	for _, encoding := range []string{"identity", "gzip"} {
		req, err := http.NewRequestWithContext(b.ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return nil, 0, err
		}
		req.Header.Set("Accept", "text/html,*/*")
		req.Header.Set("Accept-Encoding", encoding)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, 0, err
		}
		got, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			return nil, 0, err
		}
		if resp.StatusCode != http.StatusOK {
			return nil, 0, fmt.Errorf("get %s: status %d", url, resp.StatusCode)
		}
		if body == nil {
			body = got
		}
		size = len(got)
	}
	return body, size, nil
}

// polls measures how often waiting pages poll, using their own scripts.
func (b *bench) polls() error {
	out, err := b.npm(filepath.Join("web", "ui"), "bench")
	if err != nil {
		return err
	}
	var first, last float64
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var line struct {
			People        int
			Asked, Origin float64
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return fmt.Errorf("read %q: %w", lines.Text(), err)
		}
		if last = line.Asked; first == 0 {
			first = line.Asked
		}
		b.add(last <= first && line.Origin <= line.Asked,
			fmt.Sprintf("requests of a visitor a minute, %d in line", line.People),
			fmt.Sprintf("%.2f, of them %.3f to the server behind a cache", line.Asked,
				line.Origin), "no more than in a short line")
	}
	if first == 0 {
		return errors.New("the page scripts reported no measurement")
	}
	return nil
}

// checkFigures matches the browser test's line with its measurement.
var checkFigures = regexp.MustCompile(`checks of a place among 100000: ([0-9, ]+) ms`)

// check measures the check of a place among 100,000 in Chromium, using the browser test.
func (b *bench) check() error {
	out, err := b.npm(filepath.Join("web", "e2e"), "test", "--", "test/cost.test.mjs")
	found := checkFigures.FindSubmatch(out)
	if found == nil {
		return errors.Join(errors.New("the browser test reported no measurement: run make e2e once to install its dependencies"), err)
	}
	best := math.Inf(1)
	for text := range strings.SplitSeq(string(found[1]), ", ") {
		took, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("read %q: %w", text, err)
		}
		best = min(best, took)
	}
	b.add(best < 1500, "check of a place among 100,000 in Chromium", fmt.Sprintf("%.0f ms", best), "under 1500 ms")
	return nil
}

// npm runs a script of one of the Node.js packages and returns its output.
func (b *bench) npm(dir, script string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(b.ctx, "npm", append([]string{"run", "--silent", script}, args...)...) //nolint:gosec // our own
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("npm run %s in %s (make build first): %w", script, dir, err)
	}
	return out, nil
}
