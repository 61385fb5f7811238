package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	dashboards  = 10      // open at once: the limit per person
	lookingOn   = 200_000 // visitors in line
	lookRounds  = 11      // pairs with and without dashboards, alternating
	clockTicks  = 100.0   // per second, USER_HZ on Linux
	sessionName = "__Host-proofline.session"
	setupPath   = "/console/setup#"
)

// dashboard measures the cost of open dashboards while a long line is waiting and more visitors
// join at full speed.
func (b *bench) dashboard() error {
	s, err := b.product("dashboard")
	if err != nil {
		return err
	}
	defer func() { _ = s.stop() }()
	if err := s.create(b.ctx, dayRoom("seen")); err != nil {
		return err
	}
	session, err := s.signUp(b.ctx)
	if err != nil {
		return err
	}
	if _, err := (generator{ctx: b.ctx, addr: s.addr, conns: connections, total: lookingOn,
		request: joining("seen", 0)}).run(201); err != nil {
		return err
	}
	run := 0
	joins := func() (float64, error) { // server CPU time per join
		run++
		before, err := s.cpu()
		if err != nil {
			return 0, err
		}
		f, err := generator{ctx: b.ctx, addr: s.addr, conns: connections, total: 1 << 40, until: roundLength,
			request: joining("seen", run)}.run(201)
		if err != nil {
			return 0, err
		}
		after, err := s.cpu()
		return (after - before).Seconds() / float64(f.Count), err
	}
	if _, err := joins(); err != nil { // to warm up
		return err
	}
	var alone, watched []float64
	var events int64
	for round := range lookRounds {
		for _, isWatched := range []bool{round%2 == 0, round%2 != 0} { // alternate the order
			var cost float64
			if isWatched {
				cost, err = s.watched(b.ctx, session, &events, joins)
				watched = append(watched, cost)
			} else {
				cost, err = joins()
				alone = append(alone, cost)
			}
			if err != nil {
				return err
			}
		}
	}
	cost := median(watched)/median(alone) - 1
	b.add(cost < 0.05 && events >= dashboards*lookRounds*int64(roundLength/time.Second)/2,
		fmt.Sprintf("CPU of a join with %d dashboards open, %d waiting", dashboards, lookingOn),
		fmt.Sprintf("%+.1f %%: %.1f us (%.1f to %.1f), without %.1f us (%.1f to %.1f)", 100*cost,
			1e6*median(watched), 1e6*slices.Min(watched), 1e6*slices.Max(watched), 1e6*median(alone),
			1e6*slices.Min(alone), 1e6*slices.Max(alone)), "under 5 % more")
	return b.restingDashboard(s, session)
}

// restingDashboard measures the same dashboards while no visitor joins.
func (b *bench) restingDashboard(s *server, session string) error {
	var events int64
	rest := func() (float64, error) { // share of a core
		before, err := s.cpu()
		if err != nil {
			return 0, err
		}
		time.Sleep(2 * roundLength)
		after, err := s.cpu()
		return (after - before).Seconds() / (2 * roundLength).Seconds(), err
	}
	alone, err := rest()
	if err != nil {
		return err
	}
	watched, err := s.watched(b.ctx, session, &events, rest)
	if err != nil {
		return err
	}
	b.add(watched-alone < 0.05, fmt.Sprintf("%d dashboards of a line at rest", dashboards),
		fmt.Sprintf("%.2f %% of a core, %.2f %% without", 100*watched, 100*alone), "under 5 % of a core")
	return nil
}

// cpu returns the CPU time used by the server.
func (s *server) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid)) // proc_pid_stat(5)
	if err != nil {
		return 0, fmt.Errorf("read CPU time (this is measured on Linux): %w", err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("read CPU time: %q", text)
	}
	user, errUser := strconv.ParseFloat(fields[11], 64)
	system, errSystem := strconv.ParseFloat(fields[12], 64)
	return time.Duration((user + system) / clockTicks * float64(time.Second)), errors.Join(errUser, errSystem)
}

// signUp creates the first owner through the server's link, like a browser, and returns the session
// token.
func (s *server) signUp(ctx context.Context) (string, error) {
	var link string
	select {
	case link = <-s.setup:
	case <-time.After(10 * time.Second):
		return "", errors.New("the server prints no link for the first account")
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	var cookies []*http.Cookie
	for _, step := range []struct {
		path string
		form url.Values
	}{
		{"/console/invitation", url.Values{"token": {link}}},
		{"/console/invitation/accept", url.Values{"organization": {"Bench"}, "email": {"owner@bench.example"},
			"name": {"Owner"}, "password": {"ten dashboards in a long line"}}},
	} {
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.addr+step.path,
			strings.NewReader(step.form.Encode()))
		if err != nil {
			return "", err
		}
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		q.Header.Set("Accept", "text/html")
		for _, c := range cookies {
			q.AddCookie(c)
		}
		answer, err := client.Do(q)
		if err != nil {
			return "", err
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusSeeOther {
			return "", fmt.Errorf("make an account: %s: %s", step.path, answer.Status)
		}
		cookies = append(cookies, answer.Cookies()...)
	}
	for _, c := range cookies {
		if c.Name == sessionName {
			return c.Value, nil
		}
	}
	return "", errors.New("make an account: no session")
}

// watched runs a measurement while dashboards are open, and counts the events that they receive.
func (s *server) watched(ctx context.Context, session string, events *int64,
	measure func() (float64, error)) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{}}
	for range dashboards {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/console/rooms/seen/live",
			http.NoBody)
		if err != nil {
			return 0, err
		}
		q.Header.Set("Accept", "text/event-stream")
		q.Header.Set("Cookie", sessionName+"="+session)
		answer, err := client.Do(q) //nolint:bodyclose // closed by the reader
		if err != nil {
			return 0, err
		}
		if answer.StatusCode != http.StatusOK {
			_ = answer.Body.Close()
			return 0, fmt.Errorf("open a dashboard: %s", answer.Status)
		}
		go func() {
			defer answer.Body.Close()
			in := bufio.NewScanner(answer.Body)
			in.Buffer(nil, 1<<20)
			for in.Scan() {
				if strings.HasPrefix(in.Text(), "data: ") {
					atomic.AddInt64(events, 1)
				}
			}
		}()
	}
	return measure()
}
