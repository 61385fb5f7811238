package rooms

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/console/simulate/chart"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/setting"
	"github.com/proofline/proofline/web/console/format"
	"github.com/proofline/proofline/web/console/shell"
)

// Limits of simulations, which share the server with real sales.
const (
	trialVisitors     = 50_000
	trialVisitorsBusy = 10_000 // maximum while a room has visitors in line
	trialTimeout      = 12 * time.Second
	trialsKept        = 16 // number of results that are kept
	trialsAtOnce      = 1
)

// errTrialBusy is returned while another simulation is running.
var errTrialBusy = errors.New("another simulation is running: wait until it is done")

// trialForm holds the fields of the simulator.
type trialForm struct {
	Visitors, Tickets string
	Bots, NoShow      string // percentages
}

func defaultTrial() trialForm { return trialForm{"10,000", "1,000", "10", "10"} }

func readTrialForm(v url.Values) trialForm {
	if !v.Has("sim_visitors") {
		return defaultTrial()
	}
	get := func(name string) string { return format.Clean(v.Get(name)) }
	return trialForm{get("sim_visitors"), get("sim_tickets"), get("sim_bots"), get("sim_no_show")}
}

// trialResult is the result of a simulation for pages.
type trialResult struct {
	Findings []string
	Figures  []template.HTML
}

// trials runs simulations one at a time, and stores the latest results.
type trials struct {
	slots chan struct{}

	mu    sync.Mutex // guards the fields below
	busy  map[uuid.UUID]bool
	known map[[sha256.Size]byte]*trialResult
	order [][sha256.Size]byte // keys of known, oldest first
}

func newTrials() *trials {
	return &trials{slots: make(chan struct{}, trialsAtOnce), busy: map[uuid.UUID]bool{},
		known: map[[sha256.Size]byte]*trialResult{}}
}

// run simulates a plan. Each person can run one simulation at a time. A throttled simulation uses half of
// a processor.
func (t *trials) run(ctx context.Context, who uuid.UUID, p simulate.Plan, throttled bool) (*trialResult, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("write plan: %w", err)
	}
	key := sha256.Sum256(text)
	t.mu.Lock()
	found, busy := t.known[key], t.busy[who]
	if found == nil && !busy {
		t.busy[who] = true
	}
	t.mu.Unlock()
	switch {
	case found != nil:
		return found, nil
	case busy:
		return nil, errTrialBusy
	}
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.busy, who)
	}()
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-ctx.Done():
		return nil, errTrialBusy
	}
	result, err := simulateSale(ctx, p, throttled)
	if err == nil {
		t.keep(key, result)
	}
	return result, err
}

// keep stores a result, and drops the oldest.
func (t *trials) keep(key [sha256.Size]byte, r *trialResult) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, again := t.known[key]; again {
		return
	}
	t.known[key] = r
	if t.order = append(t.order, key); len(t.order) > trialsKept {
		delete(t.known, t.order[0])
		t.order = t.order[1:]
	}
}

// compared returns the window lengths that a plan is compared with.
func compared() []simulate.Duration {
	return []simulate.Duration{simulate.Duration(fairness.MinWindow) * simulate.Duration(time.Millisecond),
		simulate.Duration(time.Minute)}
}

func simulateSale(ctx context.Context, p simulate.Plan, throttled bool) (*trialResult, error) {
	rows, err := simulate.Compare(ctx, p, compared(), func(int, int,
		string) simulate.Progress {
		return throttle(throttled)
	})
	if err != nil {
		return nil, err
	}
	doors, err := simulate.CompareDoors(ctx, p, func(int, int, string) simulate.Progress { return throttle(throttled) })
	if err != nil {
		return nil, err
	}
	own := rows[0].Result
	r := &trialResult{Findings: simulate.Findings(&p, own, slices.Concat(rows[1:], doors))}
	r.Figures = append(r.Figures, chart.Waits("trial-waits", own), chart.Turns("trial-turns", own),
		chart.Advantage("trial-advantage", rows))
	return r, nil
}

// throttle returns the function that slows a simulation down.
func throttle(on bool) simulate.Progress {
	if on {
		return control.Rests()
	}
	return nil
}

// plan returns the simulation plan for the form, or the problems of its fields.
func (p *editorPage) plan(most int) (simulate.Plan, invalid.List) {
	starts, closes, rules := p.Form.schedule()
	plan := simulate.Default()
	if !isSchedule(starts, closes, rules) {
		return plan, invalid.List{{Field: "simulation", Detail: "needs valid windows: see above"}}
	}
	opens := rules[0].From
	after := func(t fairness.Time) simulate.Duration {
		return simulate.Duration(t-opens) * simulate.Duration(time.Millisecond)
	}
	plan.Room.Starts = after(starts)
	if closes != fairness.Never {
		end := after(closes)
		plan.Room.Closes = &end
	}
	for _, r := range rules {
		plan.Room.Windows = append(plan.Room.Windows, simulate.WindowRule{From: after(r.From),
			Length: simulate.Duration(r.Length) * simulate.Duration(time.Millisecond)})
	}
	if starts > opens {
		plan.Arrivals.Shape = simulate.Early
	}
	p.planDoor(&plan.Door)
	problems := p.planFigures(&plan, most)
	if len(problems) > 0 {
		return plan, problems
	}
	for _, problem := range plan.Problems() {
		problems.Add("simulation", fieldName(strings.TrimPrefix(problem.Field, "room."))+": "+problem.Detail)
	}
	return plan, problems
}

// planDoor reads how many codes the room takes, if its methods have a limit for codes. If all lanes need a code, so
// does the simulated room.
func (p *editorPage) planDoor(d *simulate.Door) {
	for line := range strings.Lines(p.Form.Value("methods")) {
		words := strings.Fields(line) // NAME KIND KEY LIMIT
		words = slices.DeleteFunc(words, func(w string) bool { return w == "method" })
		if len(words) != 4 || words[2] != setting.OwnKey {
			continue
		}
		limit, ok := format.ReadCount(words[3])
		if !ok || limit == 0 {
			continue
		}
		d.Codes = int(min(limit, simulate.MaxVisitors))
		lanes := slices.Collect(strings.Lines(p.Form.Value("lanes")))
		needs := func(lane string) bool { return slices.Contains(strings.Fields(lane), words[0]) }
		if len(lanes) > 0 && !slices.ContainsFunc(lanes, func(lane string) bool { return !needs(lane) }) {
			d.Kind = simulate.Codes
		}
		return
	}
}

// planFigures reads the figures of the form into the plan.
func (p *editorPage) planFigures(plan *simulate.Plan, most int) (problems invalid.List) {
	visitors, ok := format.ReadCount(p.Trial.Visitors)
	if !ok || visitors < 1 || int64(visitors) > int64(most) {
		problems.Add("sim_visitors", fmt.Sprintf("must be a whole number from 1 to %s", format.Number(most)))
	}
	tickets, ok := format.ReadCount(p.Trial.Tickets)
	if !ok || tickets > trialVisitors {
		problems.Add("sim_tickets", fmt.Sprintf("must be a whole number from 0 to %s; 0: enough for everyone",
			format.Number(trialVisitors)))
	}
	bots, ok := share(p.Trial.Bots)
	if !ok {
		problems.Add("sim_bots", "must be a percentage from 0 to 90")
	}
	noShow, ok := share(p.Trial.NoShow)
	if !ok {
		problems.Add("sim_no_show", "must be a percentage from 0 to 90")
	}
	perMinute, ok := format.ReadCount(p.Form.Value("outflow.per_minute"))
	if !ok && p.Form.Value("outflow.per_minute") != "" {
		problems.Add("simulation", "needs the people per minute: see above")
	} else if p.Form.Value("outflow.per_minute") == "" {
		perMinute = room.DefaultPerMinute
	}
	maxActive, _ := format.ReadCount(p.Form.Value("outflow.max_active"))
	plan.Visitors, plan.Tickets = int(visitors), int(tickets)
	plan.Bots.Count = int(math.Round(float64(visitors) * bots))
	plan.People.NoShow = noShow
	plan.Room.Outflow = simulate.Outflow{PerMinute: perMinute, MaxActive: maxActive}
	if d, ok := format.ReadLength(p.Form.Value("claim")); ok && d > 0 {
		plan.Room.Claim = simulate.Duration(d)
	}
	if d, ok := format.ReadLength(p.Form.Value("session")); ok && d > 0 {
		plan.Room.Session = simulate.Duration(d)
	}
	return problems
}

// share reads a percentage of at most 90.
func share(text string) (float64, bool) {
	x, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(text, "%")), 64)
	return x / 100, err == nil && x >= 0 && x <= 90
}

// Names returns the labels of the simulator's fields, for problems that are shown elsewhere.
func (editorPage) Names() map[string]string {
	return map[string]string{"sim_visitors": "Visitors", "sim_tickets": "Tickets on sale", "sim_bots": "Bots",
		"sim_no_show": "Do not show up"}
}

// trySale simulates the draft as typed. A script gets only the part of the page with the result.
func (h *editor) trySale(x *shell.Request) error {
	ctx, cancel := context.WithTimeout(x.Request().Context(), trialTimeout)
	defer cancel()
	var d control.Draft
	var err error
	if x.Param("id") != "new" {
		if d, err = draftOf(ctx, h.control, x); err != nil {
			return err
		}
	}
	p := readEditor(x, d)
	status := http.StatusOK
	if p.Result, p.Problems = h.trial(ctx, x.Actor.ID, &p); p.Problems != nil {
		status = http.StatusBadRequest
	}
	if p.Part = x.Form("part") == "1"; p.Part {
		return x.RenderPart(status, "room-editor", "trial-result", shell.View{Data: p, Problems: p.Problems})
	}
	return h.showEditor(ctx, x, status, p)
}

// trial runs the simulation of a form.
func (h *editor) trial(ctx context.Context, who uuid.UUID, p *editorPage) (*trialResult, invalid.List) {
	busy := h.control.IsServing()
	most := trialVisitors
	if busy {
		most = trialVisitorsBusy
	}
	plan, problems := p.plan(most)
	if len(problems) > 0 {
		return nil, problems
	}
	result, err := h.trials.run(ctx, who, plan, busy)
	wrong, isWrong := errors.AsType[*invalid.Error](err)
	switch {
	case isWrong:
		return nil, wrong.Problems
	case errors.Is(err, errTrialBusy):
		return nil, invalid.List{{Field: "simulation", Detail: errTrialBusy.Error()}}
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		return nil, invalid.List{{Field: "simulation", Detail: "took too long: try fewer visitors"}}
	case err != nil:
		h.log.Error("cannot simulate a sale", "err", err)
		return nil, invalid.List{{Field: "simulation", Detail: "failed; see the server's log"}}
	}
	return result, nil
}
