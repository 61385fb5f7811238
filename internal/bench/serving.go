package main

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/rawhttp"
)

const (
	rounds      = 3               // pairs of baseline and subject, alternating
	roundLength = 4 * time.Second // duration of each
	connections = 256
)

// ticket returns ticket number i of a run.
func ticket(run, i int) fairness.Ticket {
	var n [16]byte
	binary.BigEndian.PutUint64(n[:], uint64(run))
	binary.BigEndian.PutUint64(n[8:], uint64(i))
	return fairness.NewTicket("bench", sha256.Sum256(n[:]))
}

// joining returns the request of a new visitor.
func joining(slug string, run int) func([]byte, int) []byte {
	path := "/r/" + slug + "/join"
	return func(dst []byte, i int) []byte {
		return rawhttp.AppendRequest(dst, "POST", "bench", path, "", `{"ticket":"`+ticket(run, i).String()+`"}`)
	}
}

// dayRoom is a room with a single window that stays open.
func dayRoom(slug string) map[string]any {
	return map[string]any{"slug": slug, "windows": []any{map[string]any{"length": "24h"}}}
}

// pairs measures subject and baseline alternately, and returns the rates of both.
func pairs(bare, subject func() (*figures, error)) (ratios []float64, bareRate, rate float64, err error) {
	var bares, subjects []float64
	for range rounds {
		a, errA := bare()
		s, errS := subject()
		if err := errors.Join(errA, errS); err != nil {
			return nil, 0, 0, err
		}
		bares, subjects = append(bares, a.perSecond()), append(subjects, s.perSecond())
		ratios = append(ratios, s.perSecond()/a.perSecond())
	}
	slices.Sort(ratios)
	return ratios, median(bares), median(subjects), nil
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// joins measures durable joins, each with a receipt.
func (b *bench) joins() error {
	s, err := b.product("joins")
	if err != nil {
		return err
	}
	defer func() { _ = s.stop() }()
	if err := s.create(b.ctx, dayRoom("joins")); err != nil {
		return err
	}
	if _, err := (generator{ctx: b.ctx, addr: s.addr, conns: 64, total: 20_000,
		request: joining("joins", 0)}).run(201); err != nil {
		return err
	}
	probe, err := b.probe(http.MethodPost, "http://"+s.addr+"/r/joins/join", `{"ticket":"`+ticket(-1, 0).String()+`"}`)
	if err != nil {
		return err
	}
	bare, err := b.bare(probe)
	if err != nil {
		return err
	}
	defer func() { _ = bare.stop() }()
	run := 0
	load := func(addr string, status int) func() (*figures, error) {
		return func() (*figures, error) {
			run++
			return generator{ctx: b.ctx, addr: addr, conns: connections, total: 1 << 40, until: roundLength,
				request: joining("joins", run)}.run(status)
		}
	}
	ratios, bareRate, rate, err := pairs(load(bare.addr, 200), load(s.addr, 201))
	if err != nil {
		return err
	}
	ratio := median(ratios)
	b.add(ratio >= 0.45, "durable joins with receipt",
		fmt.Sprintf("%.0f/s, %.2f of bare Echo's %.0f/s", rate, ratio, bareRate), "0.45 or more")
	run++
	f, err := generator{ctx: b.ctx, addr: s.addr, conns: connections, rate: rate / 2, total: int(rate / 2 * 10),
		request: joining("joins", run)}.run(201)
	if err != nil {
		return err
	}
	p99 := f.Quantile(0.99)
	b.add(p99 < 15*time.Millisecond, fmt.Sprintf("latency of %.0f joins/s", f.perSecond()),
		fmt.Sprintf("p50 %s, p99 %s, max %s", ms(f.Quantile(0.5)), ms(p99), ms(f.Max)), "p99 under 15 ms")
	return nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

// reads measures the polling requests of waiting visitors.
func (b *bench) reads() error {
	s, err := b.product("reads")
	if err != nil {
		return err
	}
	defer func() { _ = s.stop() }()
	if err := s.create(b.ctx, dayRoom("reads")); err != nil {
		return err
	}
	const people = 100_000
	if _, err := (generator{ctx: b.ctx, addr: s.addr, conns: connections, total: people,
		request: joining("reads", 0)}).run(201); err != nil {
		return err
	}
	state := func(int) string { return "/r/reads/state" }
	if err := b.reading(s, "state document", state, 0.9); err != nil {
		return err
	}
	status := func(i int) string { return "/r/reads/tickets/" + ticket(0, i%people).String() }
	return b.reading(s, "ticket status", status, 0.8)
}

// reading compares one request with the baseline.
func (b *bench) reading(s *server, what string, path func(i int) string, promise float64) error {
	probe, err := b.probe(http.MethodGet, "http://"+s.addr+path(0), "")
	if err != nil {
		return err
	}
	bare, err := b.bare(probe)
	if err != nil {
		return err
	}
	defer func() { _ = bare.stop() }()
	load := func(addr string) func() (*figures, error) {
		return func() (*figures, error) {
			return generator{ctx: b.ctx, addr: addr, conns: connections, total: 1 << 40, until: roundLength,
				request: getting(path)}.run(200)
		}
	}
	ratios, bareRate, rate, err := pairs(load(bare.addr), load(s.addr))
	if err != nil {
		return err
	}
	ratio := median(ratios)
	b.add(ratio >= promise, what, fmt.Sprintf("%.0f/s, %.2f of bare Echo's %.0f/s", rate, ratio, bareRate),
		fmt.Sprintf("%.2f or more", promise))
	return nil
}

// binary returns the path of one of the product's programs.
func (b *bench) binary(name string) string { return filepath.Join(b.bin, name) }
