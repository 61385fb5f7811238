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
	"regexp"
	"strconv"
	"strings"
)

// pageAssets matches the assets that a browser loads immediately for a page.
var pageAssets = regexp.MustCompile(`(?:src|href)="(/assets/[^"]+|/r/[^"]+/(?:brand\.css|logo)[^"]*)"`)

// firstLoad measures what a phone downloads to show the page of a line.
func (b *bench) firstLoad() error {
	s, err := b.fleet.product(b.head, "pages")
	if err != nil {
		return err
	}
	if err := s.create(dayRoom("pages")); err != nil {
		return err
	}
	page, bytesLoaded, err := download(b.ctx, s.url("/r/pages"))
	if err != nil {
		return err
	}
	requests := 1
	for _, found := range pageAssets.FindAllSubmatch(page, -1) {
		_, size, err := download(b.ctx, s.url(string(found[1])))
		if err != nil {
			return err
		}
		bytesLoaded += size
		requests++
	}
	if requests <= 2 {
		return fmt.Errorf("the page names only %d assets: make build first", requests-1)
	}
	b.add(reading{goal: pageSize, value: float64(bytesLoaded) / 1000})
	return nil
}

// download gets a resource like a browser, and returns it with the size of the response's body on the
// wire.
func download(ctx context.Context, url string) (body []byte, size int, err error) {
	for _, encoding := range []string{"identity", "gzip"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
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
	out, err := npm(b.ctx, filepath.Join("web", "ui"), "bench")
	if err != nil {
		return err
	}
	var first float64
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var line struct {
			People        int
			Asked, Origin float64
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return fmt.Errorf("read %q: %w", lines.Text(), err)
		}
		if first == 0 {
			first = line.Asked
			b.add(reading{goal: pollsShort, value: first, size: line.People})
			continue
		}
		b.add(reading{goal: pollsLong, value: line.Asked / first}, reading{goal: pollsOrigin, value: line.Origin})
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
	out, err := npm(b.ctx, filepath.Join("web", "e2e"), "test", "--", "test/cost.test.mjs")
	found := checkFigures.FindSubmatch(out)
	if found == nil {
		return errors.Join(errors.New("the browser test reported no measurement: "+
			"run make e2e once to install its dependencies"), err)
	}
	for text := range strings.SplitSeq(string(found[1]), ", ") {
		took, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("read %q: %w", text, err)
		}
		b.add(reading{goal: checkTime, value: took})
	}
	return nil
}

// npm runs a script of one of the Node.js packages and returns its output.
func npm(ctx context.Context, dir, script string, args ...string) ([]byte, error) {
	args = append([]string{"run", "--silent", script}, args...)
	cmd := exec.CommandContext(ctx, "npm", args...) //nolint:gosec // our own
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("npm run %s in %s (make build first): %w", script, dir, err)
	}
	return out, nil
}
