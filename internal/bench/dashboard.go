package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

const (
	dashboards  = 10      // dashboards open at once: the limit per person
	lookingOn   = 200_000 // visitors in line
	sessionName = "__Host-proofline.session"
)

// dashboard measures the cost of open dashboards while a long line is waiting and more visitors
// join at full speed.
func (b *bench) dashboard() error {
	s, err := b.fleet.product(b.head, "dashboard")
	if err != nil {
		return err
	}
	if err := s.create(dayRoom("seen")); err != nil {
		return err
	}
	session, err := s.signUp()
	if err != nil {
		return err
	}
	if err := s.fill("seen", newBatch(), lookingOn); err != nil {
		return err
	}
	var events int64
	alone := func() (*load, error) {
		return s.load(generator{conns: 256, until: b.length, request: joining("seen")}, 201)
	}
	watched := func() (l *load, err error) {
		err = s.watched(session, &events, func() error {
			l, err = alone()
			return err
		})
		return l, err
	}
	for i := range b.runs {
		a, w, err := pair(i, alone, watched)
		if err != nil {
			return err
		}
		if events < dashboards*int64(i+1)*int64(b.length/time.Second)/2 {
			return fmt.Errorf("the dashboards received %d events in %d runs", events, i+1)
		}
		b.add(reading{goal: dashboardsJoin, value: 100 * (w.cost.server/a.cost.server - 1), cost: w.cost})
	}
	return b.restingDashboard(s, session)
}

// restingDashboard measures the same dashboards while no visitor joins.
func (b *bench) restingDashboard(s *server, session string) error {
	rest := func() (share float64, err error) { // the share of a core
		before, err := s.cpu()
		if err != nil {
			return 0, err
		}
		time.Sleep(b.length)
		after, err := s.cpu()
		return (after - before).Seconds() / b.length.Seconds(), err
	}
	for range b.runs {
		alone, err := rest()
		if err != nil {
			return err
		}
		var events int64
		var watched float64
		if err := s.watched(session, &events, func() error {
			watched, err = rest()
			return err
		}); err != nil {
			return err
		}
		b.add(reading{goal: dashboardsRest, value: 100 * (watched - alone)})
	}
	return nil
}

// signUp creates the first owner through the server's link, like a browser, and returns the session
// token.
func (s *server) signUp() (string, error) {
	link, err := os.ReadFile(filepath.Join(s.dir, "setup-link"))
	if err != nil {
		return "", err
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	var cookies []*http.Cookie
	for _, step := range []struct {
		path string
		form url.Values
	}{
		{"/console/invitation", url.Values{"token": {strings.TrimSpace(string(link))}}},
		{"/console/invitation/accept", url.Values{"organization": {"Bench"}, "email": {"owner@bench.example"},
			"name": {"Owner"}, "password": {"ten dashboards in a long line"}}},
	} {
		q, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.url(step.path),
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
func (s *server) watched(session string, events *int64, measure func() error) error {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{}}
	for range dashboards {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url("/console/rooms/seen/live"), http.NoBody)
		if err != nil {
			return err
		}
		q.Header.Set("Accept", "text/event-stream")
		q.Header.Set("Cookie", sessionName+"="+session)
		answer, err := client.Do(q) //nolint:bodyclose // closed by the reader
		if err != nil {
			return err
		}
		if answer.StatusCode != http.StatusOK {
			_ = answer.Body.Close()
			return fmt.Errorf("open a dashboard: %s", answer.Status)
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
