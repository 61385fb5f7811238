package main

import (
	"fmt"
	"strings"
)

// goal is a row of the output, and the goal for its median.
type goal struct {
	name  string
	unit  string
	kind  kind
	bound float64
	size  int // number of visitors or entries for which the goal is meant; 0: any
}

// kind determines on which side of the bound a goal is met.
type kind int

const (
	noGoal kind = iota
	atLeast
	atMost
)

// Rows without a goal are listed for their names and units. A goal with a size is for that many
// visitors.
var (
	joins64      = &goal{"joins, 64 connections", "/s", noGoal, 0, 0}
	joinsEcho64  = &goal{"  bare Echo", "/s", noGoal, 0, 0}
	joinsRatio64 = &goal{"  ratio", "of Echo", atLeast, 0.45, 0}

	joins256      = &goal{"joins, 256 connections", "/s", noGoal, 0, 0}
	joinsEcho256  = &goal{"  bare Echo", "/s", noGoal, 0, 0}
	joinsRatio256 = &goal{"  ratio", "of Echo", atLeast, 0.55, 0}

	latencyLoad = &goal{"joins at half of the maximum load", "/s", noGoal, 0, 0}
	latency50   = &goal{"  p50", "ms", noGoal, 0, 0}
	latency99   = &goal{"  p99", "ms", atMost, 15, 0}
	latencyMax  = &goal{"  slowest", "ms", noGoal, 0, 0}

	roomsMany  = &goal{"joins in 1,000 rooms", "/s", noGoal, 0, 0}
	roomsOne   = &goal{"  in one room", "/s", noGoal, 0, 0}
	roomsRatio = &goal{"  ratio", "of one room", atLeast, 0.5, 0}

	signedRate  = &goal{"joins with an issuer's signature", "/s", noGoal, 0, 0}
	signedPlain = &goal{"  without", "/s", noGoal, 0, 0}
	signedRatio = &goal{"  ratio", "of plain joins", atLeast, 0.5, 0}

	stateRate  = &goal{"state documents", "/s", noGoal, 0, 0}
	stateEcho  = &goal{"  bare Echo", "/s", noGoal, 0, 0}
	stateRatio = &goal{"  ratio", "of Echo", atLeast, 0.95, 0}

	ticketRate  = &goal{"ticket statuses", "/s", noGoal, 0, 0}
	ticketEcho  = &goal{"  bare Echo", "/s", noGoal, 0, 0}
	ticketRatio = &goal{"  ratio", "of Echo", atLeast, 0.9, 0}

	tileRate  = &goal{"complete tiles of entries, from PostgreSQL", "/s", noGoal, 0, 0}
	tileEcho  = &goal{"  bare Echo", "/s", noGoal, 0, 0}
	tileRatio = &goal{"  ratio", "of Echo", noGoal, 0, 0}

	memoryVisitor = &goal{"memory of a waiting visitor, resident", "B", atMost, 100, 0}
	memoryHeap    = &goal{"  of that, live heap", "B", noGoal, 0, 0}
	memoryRooms   = &goal{"memory of a server with 1,000 rooms, resident", "MB", atMost, 150, 0}
	memoryIdle    = &goal{"  without rooms", "MB", noGoal, 0, 0}

	restartFirst = &goal{"start until the first answer of a room", "s", atMost, 1, 3_000_000}
	restartAll   = &goal{"  until all tickets are known", "s", atMost, 2, 3_000_000}

	restartWithFirst = &goal{"start with an issuer's signature of each visitor, first answer", "s", noGoal, 0, 0}
	restartWithAll   = &goal{"  until all tickets are known", "s", atMost, 15, 1_000_000}

	storageAdmitted    = &goal{"database of a visitor, from join to claim", "B", atMost, 250, 0}
	storageDatabase    = &goal{"  until the session is released", "B", noGoal, 0, 0}
	storageWALAdmitted = &goal{"WAL of a visitor, from join to claim", "B", atMost, 300, 0}
	storageWAL         = &goal{"  until the session is released", "B", noGoal, 0, 0}

	dashboardsJoin = &goal{"server CPU that 10 dashboards add to a join", "%", atMost, 5, 0}
	dashboardsRest = &goal{"server CPU of 10 dashboards at rest", "% of a core", atMost, 5, 0}

	scrapeTime  = &goal{"scrape of a server with 1,000 rooms", "ms", atMost, 100, 0}
	scrapeEcho  = &goal{"  bare Echo, as many bytes", "ms", noGoal, 0, 0}
	scrapesJoin = &goal{"  every 5 s, takes as much CPU as", "joins/s", atMost, 200, 0} // 1 % of 20,000
	recordJoin  = &goal{"server CPU of a join that records metrics", "%", atMost, 1, 0}

	proxyRate      = &goal{"requests through the connector's proxy", "/s", noGoal, 0, 0}
	proxyBare      = &goal{"  bare reverse proxy", "/s", noGoal, 0, 0}
	proxyRatio     = &goal{"  ratio", "of bare proxy", atLeast, 0.8, 0}
	middlewareCost = &goal{"CPU that the middleware adds to a request", "µs", atMost, 10, 0}

	windowKnown   = &goal{"positions known after the window's end", "ms", atMost, 500, 1_000_000}
	windowAssigns = &goal{"  assignments appended", "/s", atLeast, 150_000, 1_000_000}
	windowJoin50  = &goal{"  joins during that, p50", "ms", noGoal, 0, 0}
	windowJoin99  = &goal{"  joins during that, p99", "ms", atMost, 100, 0}
	replayRate    = &goal{"entries replayed at start", "/s", atLeast, 500_000, 0}

	auditFew        = &goal{"audit, 60 windows", "s", atMost, 4, 1_000_000}
	auditFewMemory  = &goal{"  memory", "MB", atMost, 400, 1_000_000}
	auditMany       = &goal{"audit, 10,000 windows", "s", atMost, 8, 1_000_000}
	auditManyMemory = &goal{"  memory", "MB", noGoal, 0, 0}
	auditLong       = &goal{"audit of a longer room, 60 windows", "s", noGoal, 0, 0}
	auditLongMemory = &goal{"  memory", "MB", atMost, 300, 3_000_000}

	auditWith       = &goal{"audit with an issuer's signature of each visitor", "s", atMost, 25, 1_000_000}
	auditWithCPU    = &goal{"  CPU", "s", noGoal, 0, 0}
	auditWithMemory = &goal{"  memory", "MB", atMost, 300, 1_000_000}

	pageSize    = &goal{"first load of the page of a line", "kB", atMost, 60, 0}
	pollsShort  = &goal{"requests of a waiting visitor", "a minute", noGoal, 0, 0}
	pollsLong   = &goal{"  in lines of 10,000 and 100,000", "of that", atMost, 1, 0}
	pollsOrigin = &goal{"  of them to the server behind a cache", "a minute", noGoal, 0, 0}
	checkTime   = &goal{"check of a place among 100,000 in Chromium", "ms", atMost, 1500, 0}
)

// met reports whether a value meets the goal.
func (g *goal) met(value float64) bool {
	switch g.kind {
	case atLeast:
		return value >= g.bound
	case atMost:
		return value <= g.bound
	default:
		return true
	}
}

// text returns the goal, such as "at least 0.5".
func (g *goal) text() string {
	words := [...]string{noGoal: "", atLeast: "at least ", atMost: "at most "}[g.kind]
	if words == "" {
		return ""
	}
	words += number(g.bound)
	if g.size > 0 {
		words += " with " + number(float64(g.size))
	}
	return words
}

// verdict compares a row with its goal. A run that is smaller than the goal can miss the goal,
// but cannot meet it.
func (g *goal) verdict(value float64, size int) string {
	switch {
	case g.kind == noGoal:
		return ""
	case !g.met(value):
		return "missed"
	case size < g.size:
		return "open: measured with " + number(float64(size))
	}
	return "met"
}

// number formats a value with about four digits, and thousands with commas.
func number(v float64) string {
	switch {
	case v < 0:
		return "-" + number(-v)
	case v == float64(int64(v)) && v < 1000:
		return fmt.Sprintf("%d", int64(v))
	case v < 1:
		return fmt.Sprintf("%.3f", v)
	case v < 100:
		return fmt.Sprintf("%.2f", v)
	case v < 999.5:
		return fmt.Sprintf("%.0f", v)
	}
	digits := fmt.Sprintf("%.0f", v)
	var parts []string
	for len(digits) > 3 {
		parts = append([]string{digits[len(digits)-3:]}, parts...)
		digits = digits[:len(digits)-3]
	}
	return strings.Join(append([]string{digits}, parts...), ",")
}
