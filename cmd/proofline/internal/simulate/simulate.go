// Package simulate implements "proofline simulate", which simulates a sale before its room exists:
// it reads a plan, runs the package console/simulate, and prints the results.
package simulate

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/console/rehearse"
	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/console/simulate/chart"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
)

const (
	maxPlan  = 64 << 20 // size of a plan in bytes; it may contain a recording
	openHint = "give a file, or - for standard input"
)

type simulateFlags struct {
	file, room         string
	arrivals, html     string
	bots, shape, door  string
	perOperator        int
	bits, accounts     int
	window             time.Duration
	starts, halfLife   time.Duration
	visitors, tickets  int
	outflow, maxActive uint32
	seed               uint64
	compare, doors     bool
	slots              int
	lots               bool
	json               bool
}

// Command returns "proofline simulate".
func Command(t *cli.Terminal) *cobra.Command {
	var f simulateFlags
	c := &cobra.Command{
		Use:   "simulate",
		Short: "Simulate a sale: when visitors are called, and what bots gain",
		Long: `Simulate a sale before its room is published. A crowd, generated or recorded, goes
through the real rules of a room. The result shows how long people wait, and how
much it helps to be early, to be fast, or to be a bot.

A plan has more options than the flags: console/simulate/README.md lists its
fields, and --json prints the simulated plan. Flags override the plan.`,
		Example: `  proofline simulate --visitors 50000 --tickets 5000 --bots 10% --window 1m --compare
  proofline simulate --starts 30m --shape early --outflow 300 --html sale.html
  proofline simulate --room sale.json --visitors 20000 --tickets 2000 --compare
  proofline simulate -f plan.yaml --compare --json
  proofline simulate --visitors 11000 --bots 1000 --per-operator 1000 --compare-doors
  proofline simulate --starts 30m --compare-slots 6 --compare-lots
  proofline simulate --arrivals https://example.com/r/last-year --tickets 5000`,
		Args: cobra.NoArgs,
		RunE: cli.Runs(func(c *cobra.Command, _ []string) error { return f.run(c, t) }),
	}
	flags := c.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "`FILE` with the plan, JSON or YAML; - for standard input")
	d := simulate.Default()
	flags.StringVar(&f.room, "room", "", "`FILE` with the JSON of a room whose rules are used")
	flags.IntVar(&f.visitors, "visitors", d.Visitors, "`N` visitors, bots included")
	flags.IntVar(&f.tickets, "tickets", d.Tickets, "`N` tickets on sale; 0: enough for all")
	flags.StringVar(&f.bots, "bots", "10%", "`N` bots among the visitors, or a share such as 10%")
	flags.IntVar(&f.perOperator, "per-operator", d.Bots.PerOperator, "`N` bots that each operator runs")
	flags.StringVar(&f.door, "door", string(simulate.Open),
		"`KIND` of what a join needs: open, work, accounts or codes")
	flags.IntVar(&f.bits, "bits", d.Door.Bits, "`N` bits of work")
	flags.IntVar(&f.accounts, "accounts", d.Door.Accounts, "`N` accounts that each operator has")
	flags.DurationVar(&f.window, "window", 0,
		"`TIME` that every window lasts (default 1m, and one window until --starts)")
	flags.DurationVar(&f.starts, "starts", 0, "`TIME` from the opening until calls begin")
	flags.Uint32Var(&f.outflow, "outflow", d.Room.Outflow.PerMinute, "`N` admissions a minute")
	flags.Uint32Var(&f.maxActive, "max-active", 0, "`N` visitors at the site at once; 0: no limit")
	flags.StringVar(&f.shape, "shape", string(simulate.Burst),
		"`SHAPE` of the arrivals: burst, steady or early, the default if calls begin after the opening")
	flags.DurationVar(&f.halfLife, "half-life", time.Duration(d.Arrivals.HalfLife), "`TIME` in which a burst halves")
	flags.StringVar(&f.arrivals, "arrivals", "",
		"`FILE` with recorded arrivals (CSV: time,count), or the URL or directory of a transcript")
	flags.Uint64Var(&f.seed, "seed", 1, "`N` that determines crowd and draws")
	flags.BoolVar(&f.compare, "compare", false, "also simulate windows of other lengths with the same crowd")
	flags.BoolVar(&f.doors, "compare-doors", false, "also simulate each kind of door with the same crowd")
	flags.IntVar(&f.slots, "compare-slots", 0,
		"also cut the first window into `N` slots, and let none, half and all of the people choose theirs")
	flags.BoolVar(&f.lots, "compare-lots", false, "also show what a second lot in the draw is worth")
	flags.StringVar(&f.html, "html", "", "write a page with charts to `FILE`")
	flags.BoolVar(&f.json, "json", false, "print plan, result and findings as JSON")
	return c
}

// simulated is the output of --json.
type simulated struct {
	Plan     simulate.Plan      `json:"plan"`
	Result   *simulate.Result   `json:"result"`
	Rows     []simulate.Row     `json:"comparison,omitempty"` // windows
	Doors    []simulate.Row     `json:"doors,omitempty"`
	Slots    []simulate.SlotRow `json:"slots,omitempty"`
	Lots     []simulate.LotRow  `json:"lots,omitempty"`
	Findings []string           `json:"findings"`
}

func (f *simulateFlags) run(c *cobra.Command, t *cli.Terminal) error {
	p, err := f.plan(c, t)
	if err != nil {
		return err
	}
	if f.slots != 0 && (f.slots < 2 || f.slots > fairness.MaxSlots) {
		return cli.Usage(fmt.Errorf("--compare-slots: %d is not 2 to %d", f.slots, fairness.MaxSlots),
			"give the number of slots of the first window")
	}
	s := simulated{Plan: p}
	live := t.Live()
	progress := func(label string) simulate.Progress {
		return func(joined, settled, visitors int) {
			live.Show("%s: %d of %d joined, %d done", label, joined, visitors, settled)
		}
	}
	perRow := func(_, _ int, label string) simulate.Progress { return progress(label) }
	if f.compare {
		s.Rows, err = simulate.Compare(c.Context(), p, simulate.Lengths(), perRow)
	} else {
		s.Result, err = simulate.Run(c.Context(), p, progress("simulating"))
	}
	if err == nil && f.doors {
		s.Doors, err = simulate.CompareDoors(c.Context(), p, perRow)
	}
	if err == nil && f.slots > 0 {
		s.Slots = simulate.CompareSlots(p, f.slots)
	}
	if err == nil && f.lots {
		s.Lots = simulate.CompareLots(p)
	}
	live.Clear()
	if err != nil {
		return asUsage(err)
	}
	if f.compare {
		s.Result = s.Rows[0].Result
	}
	s.Findings = simulate.Findings(&s.Plan, s.Result, slices.Concat(s.Rows, s.Doors))
	if f.html != "" {
		if err := s.writePage(t, f.html); err != nil {
			return err
		}
	}
	if f.json {
		return t.PrintJSON(s)
	}
	return printSimulated(t, &s)
}

// asUsage turns an invalid plan into a usage error, with one field a line.
func asUsage(err error) error {
	wrong := (*invalid.Error)(nil)
	if !errors.As(err, &wrong) {
		return err
	}
	lines := []string{"the plan is invalid:"}
	for _, p := range wrong.Problems {
		lines = append(lines, "  "+strings.TrimSpace(p.Field+" "+p.Detail))
	}
	return cli.Usage(errors.New(strings.Join(lines, "\n")), "console/simulate/README.md lists the fields of a plan")
}

// plan reads the plan's file, and applies the flags to it.
func (f *simulateFlags) plan(c *cobra.Command, t *cli.Terminal) (simulate.Plan, error) {
	p := simulate.Default()
	if f.file != "" {
		var err error
		if p, err = f.read(t); err != nil {
			return p, err
		}
	}
	if f.room != "" {
		c, err := f.readRoom(t)
		if err != nil {
			return p, err
		}
		p.Room = rehearse.SimulatedRoom(c)
	}
	if f.arrivals != "" {
		list, err := recording(c.Context(), f.arrivals)
		if err != nil {
			return p, err
		}
		p.Record(list, 0)
	}
	f.change(&p, c.Flags())
	if err := f.changeBots(&p, c.Flags()); err != nil {
		return p, err
	}
	return p, asUsage(p.Problems().Err())
}

func (f *simulateFlags) read(t *cli.Terminal) (p simulate.Plan, err error) {
	text, err := t.ReadFile(f.file, maxPlan, openHint)
	if err != nil {
		return p, err
	}
	if text, err = yaml.YAMLToJSONStrict(text); err != nil { // JSON is YAML
		return p, cli.Usage(fmt.Errorf("%s is neither JSON nor YAML: %w", f.file, err),
			"console/simulate/README.md has an example")
	}
	p, err = simulate.ParsePlan(text)
	return p, asUsage(err)
}

// readRoom reads a file as "proofline room create" does.
func (f *simulateFlags) readRoom(t *cli.Terminal) (c room.Config, err error) {
	text, err := t.ReadFile(f.room, maxPlan, openHint)
	if err != nil {
		return c, err
	}
	if c, err = room.ParseConfig(text); err != nil {
		return c, cli.Usage(fmt.Errorf("%s: %w", f.room, err), "see an example with proofline room create --help")
	}
	return c, nil
}

// change applies the flags on the command line to the plan.
func (f *simulateFlags) change(p *simulate.Plan, flags *pflag.FlagSet) {
	for name, take := range map[string]func(){
		"per-operator": func() { p.Bots.PerOperator = f.perOperator },
		"door":         func() { p.Door.Kind = simulate.DoorKind(f.door) },
		"bits":         func() { p.Door.Bits = f.bits },
		"accounts":     func() { p.Door.Accounts = f.accounts },
		"visitors":     func() { p.Visitors = f.visitors },
		"tickets":      func() { p.Tickets = f.tickets },
		"outflow":      func() { p.Room.Outflow.PerMinute = f.outflow },
		"max-active":   func() { p.Room.Outflow.MaxActive = f.maxActive },
		"starts":       func() { p.Room.Starts = simulate.Duration(f.starts) },
		"shape":        func() { p.Arrivals.Shape = simulate.Shape(f.shape) },
		"half-life":    func() { p.Arrivals.HalfLife = simulate.Duration(f.halfLife) },
		"seed":         func() { p.Seed = f.seed },
		"window":       func() { p.Room.Windows = []simulate.WindowRule{{Length: simulate.Duration(f.window)}} },
	} {
		if flags.Changed(name) {
			take()
		}
	}
	if p.Room.Starts > 0 && p.Arrivals.Shape == simulate.Burst && f.file == "" && !flags.Changed("shape") {
		p.Arrivals.Shape = simulate.Early
	}
}

// changeBots sets the number of bots. Without the flag it is the number in the plan's file or
// recording, or else a tenth of the visitors. Bots are added to a recording.
func (f *simulateFlags) changeBots(p *simulate.Plan, flags *pflag.FlagSet) error {
	recorded := f.arrivals != ""
	switch {
	case flags.Changed("bots"):
	case f.file != "" || recorded:
		return nil
	}
	n, err := strconv.Atoi(f.bots)
	if share, isShare := strings.CutSuffix(f.bots, "%"); isShare {
		percent, wrong := strconv.ParseFloat(share, 64)
		if err = wrong; err == nil && !(percent >= 0 && percent <= 100) {
			err = strconv.ErrRange
		}
		n = int(percent / 100 * float64(p.Visitors))
	}
	if err != nil {
		return cli.Usage(fmt.Errorf("--bots: %q is not a number", f.bots),
			"give one such as 500, or a share such as 10%")
	}
	if p.Bots.Count = n; recorded && !flags.Changed("visitors") {
		p.Visitors += n
	}
	return nil
}

func (s *simulated) writePage(t *cli.Terminal, name string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return cli.Usage(err, "give a file to write the page to")
	}
	report := &chart.Report{Plan: s.Plan, Result: s.Result, Rows: s.Rows, Program: "proofline " + t.Version}
	return errors.Join(chart.WritePage(file, report), file.Close())
}

var groupTitles = map[simulate.Name]string{
	simulate.Humans: "people", simulate.Slow: "  slow", simulate.Fast: "  fast", simulate.First: "  first third",
	simulate.Middle: "  middle third", simulate.Last: "  last third", simulate.Machines: "bots",
}

func printSimulated(t *cli.Terminal, s *simulated) error {
	verdict, findings := s.Findings[0], s.Findings[1:]
	rows := [][]string{{"GROUP", "VISITORS", "CALLED IN TIME", "TICKETS", "OVER FAIR SHARE", "MEDIAN WAIT"}}
	for _, g := range s.Result.Groups {
		if g.Visitors > 0 {
			rows = append(rows, []string{
				groupTitles[g.Name], simulate.Count(g.Visitors), simulate.Percent(g.Turn), simulate.Count(g.Sold),
				simulate.Figure(g.Advantage), waited(g.Wait),
			})
		}
	}
	err := errors.Join(t.Printf("%s\n\n", verdict), t.PrintTable(rows...))
	if len(s.Rows) > 0 {
		err = errors.Join(err, t.Printf("\n"), t.PrintTable(comparison(s.Rows)...))
	}
	if len(s.Doors) > 0 {
		err = errors.Join(err, t.Printf("\n"), t.PrintTable(comparedDoors(&s.Plan, s.Doors)...))
	}
	if len(s.Slots) > 0 {
		err = errors.Join(err, t.Printf("\n"), t.PrintTable(comparedSlots(s.Slots)...))
	}
	if len(s.Lots) > 0 {
		err = errors.Join(err, t.Printf("\n"), t.PrintTable(comparedLots(s.Lots)...))
	}
	err = errors.Join(err, t.Printf("\n"))
	for _, finding := range findings {
		err = errors.Join(err, t.Printf("- %s\n", finding))
	}
	return err
}

// comparison returns a table with a row for each window length.
func comparison(rows []simulate.Row) [][]string {
	table := [][]string{{
		"WINDOWS", "BOT : PERSON", "FAST : SLOW", "FIRST : LAST THIRD", "IN ORDER", "MEDIAN WAIT", "ENDS AFTER",
	}}
	for _, row := range rows {
		r := row.Result
		table = append(table, []string{
			row.Label, edge(r, simulate.Machines, simulate.Humans), edge(r, simulate.Fast, simulate.Slow),
			edge(r, simulate.First, simulate.Last), simulate.Percent(r.Order), waited(r.Wait), r.Ends.Words(),
		})
	}
	return table
}

// comparedDoors returns a table with a row for each door: what bots hold, and what that and a person's place cost.
func comparedDoors(p *simulate.Plan, rows []simulate.Row) [][]string {
	table := [][]string{{"DOOR", "BOTS' PLACES", "OF THE FIRST", "BOTS' TICKETS", "AN OPERATOR PAYS", "A PERSON PAYS"}}
	for _, row := range rows {
		robots, found := row.Result.Group(simulate.Machines)
		first := "-"
		if found && row.Result.Front > 0 {
			first = simulate.Count(robots.Front) + "/" + simulate.Count(row.Result.Front)
		}
		operator, person := p.Prices(&row)
		table = append(table, []string{row.Label, simulate.Count(robots.Places), first, simulate.Percent(robots.Share),
			operator, person})
	}
	return table
}

// comparedSlots returns a table with a row for each way to choose a slot of the first window.
func comparedSlots(rows []simulate.SlotRow) [][]string {
	place := func(mean float64) string {
		if mean == 0 {
			return "-"
		}
		return simulate.Count(int(mean + 0.5))
	}
	table := [][]string{{"FIRST WINDOW", "PEAK OF JOINS", "MEAN PLACE: CHOOSES", "AT THE OPENING", "AT ANY TIME"}}
	for _, row := range rows {
		table = append(table, []string{
			row.Label(), simulate.Count(row.Peak) + "/s", place(row.Chosen), place(row.Opening), place(row.Random),
		})
	}
	return table
}

// comparedLots returns a table with a row for each share of visitors with a second lot.
func comparedLots(rows []simulate.LotRow) [][]string {
	table := [][]string{{"HAVE TWO LOTS", "OF THESE AMONG THE FIRST", "OF THE OTHERS", "TIMES AS OFTEN"}}
	for _, row := range rows {
		times := "-"
		if row.Without > 0 {
			times = simulate.Figure(row.With / row.Without)
		}
		table = append(table, []string{
			simulate.Percent(row.Share), simulate.Percent(row.With), simulate.Percent(row.Without), times,
		})
	}
	return table
}

// edge returns how many times as likely group a is to be called in time as group b.
func edge(r *simulate.Result, a, b simulate.Name) string {
	if x, ok := r.Edge(a, b); ok {
		return simulate.Figure(x)
	}
	if x, ok := r.Edge(b, a); ok && x == 0 {
		return "never the latter"
	}
	return "-"
}

func waited(w simulate.Wait) string {
	if w.Called == 0 {
		return "-"
	}
	return w.Median.Words()
}
