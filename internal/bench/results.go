package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// reading is one value of a row, from one run.
type reading struct {
	goal  *goal
	value float64
	size  int   // number of visitors measured, for goals with a size
	cost  *cost // nil: not a load
}

// cost is the CPU time of a request in microseconds.
type cost struct {
	server, postgres, generator float64
}

// costOf returns the cost of a load.
func costOf(before, after usage, requests uint64) *cost {
	each := func(d time.Duration) float64 {
		return float64(d) / float64(time.Microsecond) / float64(max(requests, 1))
	}
	return &cost{each(after.server - before.server), each(after.postgres - before.postgres),
		each(after.generator - before.generator)}
}

// row holds the readings of one goal.
type row struct {
	goal   *goal
	values []float64
	size   int
	costs  []cost
}

// results are rows in the order of their first readings.
type results []*row

// add adds a reading to its row.
func (r *results) add(m reading) {
	i := slices.IndexFunc(*r, func(w *row) bool { return w.goal == m.goal })
	if i < 0 {
		i = len(*r)
		*r = append(*r, &row{goal: m.goal, size: m.size})
	}
	w := (*r)[i]
	w.values = append(w.values, m.value)
	if m.cost != nil {
		w.costs = append(w.costs, *m.cost)
	}
}

// find returns the row of a goal; nil: there is none.
func (r results) find(g *goal) *row {
	for _, w := range r {
		if w.goal == g {
			return w
		}
	}
	return nil
}

// median returns the middle value; of an even number of values, the larger of the two in the
// middle.
func median[T cmp.Ordered](list []T) T {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// name returns the name of the row, with the number of visitors if that matters.
func (w *row) name() string {
	if w.size == 0 {
		return w.goal.name
	}
	return w.goal.name + ", " + number(float64(w.size)) + " visitors"
}

// cost returns the medians of the row's costs as columns.
func (w *row) cost() string {
	if len(w.costs) == 0 {
		return "\t\t"
	}
	column := func(part func(cost) float64) string {
		var list []float64
		for _, c := range w.costs {
			list = append(list, part(c))
		}
		return fmt.Sprintf("%.1f", median(list))
	}
	return column(func(c cost) float64 { return c.server }) + "\t" +
		column(func(c cost) float64 { return c.postgres }) + "\t" +
		column(func(c cost) float64 { return c.generator })
}

// print prints all rows, and reports whether no goal was missed.
func (r results) print(out io.Writer) bool {
	kept := true
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\truns\tmin\tmedian\tmax\t\tgoal\t\tserver\tPostgreSQL\tgenerator")
	for _, row := range r {
		middle := median(row.values)
		verdict := row.goal.verdict(middle, row.size)
		kept = kept && verdict != "missed"
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", row.name(), len(row.values),
			number(slices.Min(row.values)), number(middle), number(slices.Max(row.values)), row.goal.unit,
			row.goal.text(), verdict, row.cost())
	}
	_ = w.Flush() // it writes to standard output
	fmt.Fprintln(out, "\nThe last three columns are the CPU time of a request in microseconds.")
	return kept
}

// compare prints the medians of two versions. The difference is the median of the differences of
// paired runs.
func compare(out io.Writer, base, head results) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tbase\thead\t\tdifference\tsmallest\tlargest")
	for _, b := range base {
		h := head.find(b.goal)
		if h == nil || len(h.values) != len(b.values) {
			continue // an error ended the run
		}
		var differences []float64
		for i, v := range b.values {
			differences = append(differences, 100*(h.values[i]/v-1))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%+.1f %%\t%+.1f %%\t%+.1f %%\n", b.goal.name, number(median(b.values)),
			number(median(h.values)), b.goal.unit, median(differences), slices.Min(differences),
			slices.Max(differences))
		costRow(w, "server", b, h, func(c cost) float64 { return c.server })
		costRow(w, "PostgreSQL", b, h, func(c cost) float64 { return c.postgres })
	}
	_ = w.Flush() // it writes to standard output
	fmt.Fprintln(out, "\nA difference is the median, smallest and largest one of paired runs.")
}

// costRow prints the CPU time of a request in both versions.
func costRow(w io.Writer, name string, base, head *row, part func(cost) float64) {
	var bases, heads, differences []float64
	for i := range base.costs {
		b, h := part(base.costs[i]), part(head.costs[i])
		if b == 0 || h == 0 {
			return
		}
		bases, heads, differences = append(bases, b), append(heads, h), append(differences, 100*(h/b-1))
	}
	if len(bases) > 0 {
		fmt.Fprintf(w, "  %s CPU\t%.1f\t%.1f\tµs\t%+.1f %%\t%+.1f %%\t%+.1f %%\n", name, median(bases), median(heads),
			median(differences), slices.Min(differences), slices.Max(differences))
	}
}
