package simulate

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/proofline/proofline/fairness"
)

// Findings describes a result in sentences, the verdict first. Rows, which may be empty, are those of
// [Compare] and [CompareDoors] for the same plan.
func Findings(p *Plan, r *Result, rows []Row) []string {
	list := []string{Verdict(r), outcome(r)}
	list = append(list, waits(r)...)
	list = append(list, bots(p, r)...)
	list = append(list, atTheDoor(p, r)...)
	list = append(list, hurry(r)...)
	list = append(list, pace(p, r)...)
	list = append(list, tradeOff(r, rows)...)
	return append(list, doors(p, rows)...)
}

// Verdict describes in one line whether the sale is fair to people.
func Verdict(r *Result) string {
	switch robots, ok := r.Group(Machines); {
	case !r.Finished:
		return "Too slow: the line does not empty at this outflow."
	case !ok || robots.Visitors == 0:
		return "No bots are in this crowd."
	}
	return BotGain(r)
}

// BotGain describes in a sentence or two what a bot gains over a person.
func BotGain(r *Result) string {
	robots, people, ok := both(r, Machines, Humans)
	if !ok {
		return "A bot gains nothing: every visitor who waits is let in."
	}
	switch x, known := edge(robots, people); {
	case known && gainsNothing(robots, people):
		return "A bot gains nothing: it is no more likely than a person to be called in time."
	case known && (x <= 1 || isLuck(robots, people)):
		return fmt.Sprintf("This crowd is too small to tell what a bot gains: in it a bot is %s times as likely as a person to be called in time, which luck alone could do.", Figure(x))
	}
	text := sentence(likely("a bot", "a person", robots, people)) + "."
	early, found := r.Group(First)
	if found && gainsNothing(robots, early) {
		text += " It gains by arriving early, not by being fast: a person who arrives as early has the same chance."
	}
	return text
}

// isLuck reports whether luck alone could explain the difference between two groups.
func isLuck(a, b Group) bool {
	x, ok := edge(a, b)
	return ok && math.Abs(math.Log(x)) < luck(a, b)
}

// luck returns how far luck alone can move the logarithm of [edge].
func luck(a, b Group) float64 {
	return sure * math.Sqrt(1/float64(max(a.Wait.Called, 1))+1/float64(max(b.Wait.Called, 1)))
}

// slight is the factor below which an advantage is negligible.
const slight = 1.4

// gainsNothing reports whether group a has no advantage over b: none that luck alone could not
// explain, and at most a slight one even if luck has hidden a part of it.
func gainsNothing(a, b Group) bool {
	x, ok := edge(a, b)
	return ok && (x <= 1 || isLuck(a, b)) && x*math.Exp(luck(a, b)) < slight
}

// outcome describes how the sale went.
func outcome(r *Result) string {
	in := fmt.Sprintf("%s of %s visitors were let in", Count(r.Admitted), Count(r.Visitors))
	switch {
	case !r.Finished:
		return fmt.Sprintf("Two weeks after the last arrival people are still in line: %s. The outflow is too low for this crowd.", in)
	case r.SoldOut:
		late := ""
		if r.Late > 0 {
			late = fmt.Sprintf("; %s arrived later", Count(r.Late))
		}
		return fmt.Sprintf("The %s tickets are sold %s after the opening: %s, and %s were still in line%s.",
			Count(r.Sold), r.Ends.Words(), in, Count(r.InVain), late)
	case r.Tickets > 0:
		return fmt.Sprintf("%s of %s tickets are sold: there were no more buyers, and the line was empty %s after the opening.", Count(r.Sold), Count(r.Tickets), r.Ends.Words())
	}
	return fmt.Sprintf("The line is empty %s after the opening: %s.", r.Ends.Words(), in)
}

func waits(r *Result) []string {
	if r.Wait.Called == 0 {
		return []string{"No person was called."}
	}
	return []string{fmt.Sprintf("Half of the people who were called waited less than %s, and one in ten more than %s. At most %s were in line at once.",
		r.Wait.Median.Words(), r.Wait.P90.Words(), Count(r.Peak))}
}

// sure is the number of standard errors beyond which a difference is not luck. With ten comparisons
// in a result, one result in a hundred has a wrong one (Bonferroni bound).
const sure = 3.3

// likely compares the chances of being called while there are tickets. It says so if luck alone could explain the
// difference, assuming that both counts are Poisson distributed.
func likely(who, whom string, a, b Group) string {
	x, _ := edge(a, b)
	switch {
	case a.Wait.Called == 0 && b.Wait.Called == 0:
		return fmt.Sprintf("neither %s nor %s is called in time", who, whom)
	case a.Wait.Called == 0:
		return fmt.Sprintf("%s is never called in time, unlike %s", who, whom)
	case b.Wait.Called == 0:
		return fmt.Sprintf("%s is called in time, but %s never is", who, whom)
	case x >= 100:
		return fmt.Sprintf("%s is more than 100 times as likely as %s to be called in time", who, whom)
	case Figure(x) == "1":
		return fmt.Sprintf("%s is as likely as %s to be called in time", who, whom)
	case isLuck(a, b):
		return fmt.Sprintf("%s is about as likely as %s to be called in time (%s times in this crowd, too little to tell it from luck)", who, whom, Figure(x))
	}
	return fmt.Sprintf("%s is %s times as likely as %s to be called in time", who, Figure(x), whom)
}

// edge returns how many times as likely a visitor of group a is to be called as one of b; false if
// the ratio is undefined.
func edge(a, b Group) (float64, bool) {
	return a.Turn / b.Turn, b.Turn > 0
}

// Edge returns how many times as likely a visitor of group a is to be called in time as one of b;
// false if the ratio is undefined, or if all visitors are called.
func (r *Result) Edge(a, b Name) (float64, bool) {
	one, other, ok := both(r, a, b)
	if !ok {
		return 0, false
	}
	return edge(one, other)
}

// both returns two groups of a sale that sold out. It returns false if there is nothing to compare:
// when all visitors get in, none has an advantage.
func both(r *Result, a, b Name) (Group, Group, bool) {
	one, ok := r.Group(a)
	other, found := r.Group(b)
	return one, other, ok && found && r.SoldOut
}

func bots(p *Plan, r *Result) []string {
	robots, people, ok := both(r, Machines, Humans)
	if !ok {
		return nil
	}
	why := ""
	if gainsNothing(robots, people) && robots.Advantage > max(robots.Head, 1) {
		why = ", because they always show up and buy when called, and people do not"
	}
	list := []string{fmt.Sprintf("%s. Bots are %s of the visitors and get %s of the tickets%s.",
		sentence(likely("a bot", "a person", robots, people)),
		Percent(float64(robots.Visitors)/float64(r.Visitors)), Percent(float64(robots.Sold)/float64(r.Sold)), why)}
	if n := p.Bots.PerOperator; n > 1 && robots.Visitors >= n && p.Door.Kind == Open {
		list = append(list, fmt.Sprintf("No window can see who is behind a visitor: an operator with %s bots gets %s tickets on average, and a person %s. Limit tickets by account or payment card at the shop.",
			Count(n), Figure(robots.Chance*float64(n)), Figure(people.Chance)))
	}
	return list
}

// hurry describes the advantage of being early, and of being fast.
func hurry(r *Result) []string {
	var list []string
	if early, late, ok := both(r, First, Last); ok {
		list = append(list, sentence(likely("a person in the first third to arrive", "one in the last third", early,
			late))+".")
	}
	if quick, others, ok := both(r, Fast, Slow); ok {
		list = append(list, sentence(likely("a person with a fast connection", "one without", quick, others))+".")
	}
	return list
}

// pace describes how the outflow was used.
func pace(p *Plan, r *Result) []string {
	var list []string
	if r.Idle >= 0.1 {
		list = append(list, fmt.Sprintf("%s of the outflow is unused: the line is empty, its windows are not drawn, or the limit of people at the site is reached.", Percent(r.Idle)))
	}
	if r.NoShows*20 > r.Called {
		list = append(list, fmt.Sprintf("%s of those called did not show up in time. Others are called in their place %s after the call.", Percent(float64(r.NoShows)/float64(r.Called)), p.Room.Claim.Words()))
	}
	if r.Away > 0 {
		list = append(list, fmt.Sprintf("%s visitors arrived after the room had closed.", Count(r.Away)))
	}
	return list
}

// tradeOff describes, for each row, what a bot gains and how much later the sale ends.
func tradeOff(r *Result, rows []Row) []string {
	var list []string
	for _, row := range rows {
		robots, people, ok := both(row.Result, Machines, Humans)
		if !ok || row.Length == 0 { // the plan's own windows are described above
			continue
		}
		list = append(list, fmt.Sprintf("%s: %s%s.", sentence(row.Label), likely("a bot", "a person", robots, people),
			later(row.Result.Ends-r.Ends)))
	}
	return list
}

// later describes how much later a sale ends than the planned one, if at all.
func later(d Duration) string {
	switch {
	case d >= Duration(10*time.Second):
		return "; the sale ends " + d.Words() + " later"
	case d <= -Duration(10*time.Second):
		return "; the sale ends " + (-d).Words() + " earlier"
	}
	return ""
}

func sentence(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}

// Words formats a duration for readers, in at most two units.
func (d Duration) Words() string {
	ms := d.millis()
	unit := func(n fairness.Millis, name string) string {
		if n == 1 {
			return "1 " + name
		}
		return strconv.FormatInt(int64(n), 10) + " " + name + "s"
	}
	two := func(large fairness.Millis, name string, small fairness.Millis, next string) string {
		n := (ms + small/2) / small * small
		if n%large == 0 {
			return unit(n/large, name)
		}
		return unit(n/large, name) + " " + unit(n%large/small, next)
	}
	const second, minute, hour, day = 1000, 60_000, 3_600_000, 86_400_000
	switch {
	case ms == 0:
		return "0 s"
	case ms < second:
		return fmt.Sprintf("%d ms", ms)
	case ms < minute-second/2:
		return strconv.FormatFloat(math.Round(float64(ms)/100)/10, 'f', -1, 64) + " s"
	case ms < hour-second/2:
		return two(minute, "minute", second, "second")
	case ms < day-minute/2:
		return two(hour, "hour", minute, "minute")
	}
	return two(day, "day", hour, "hour")
}

// Figure formats a number with two or three significant digits.
func Figure(x float64) string {
	switch {
	case x > 0 && x < 0.001:
		return "less than 0.001"
	case x < 1:
		return strconv.FormatFloat(x, 'g', 2, 64)
	case x < 10:
		return strconv.FormatFloat(math.Round(x*100)/100, 'f', -1, 64)
	case x < 100:
		return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64)
	}
	return Count(int(math.Round(x)))
}

// Percent formats a share as a percentage.
func Percent(share float64) string {
	if share > 0 && share < 0.1 {
		return strconv.FormatFloat(math.Round(share*1000)/10, 'f', -1, 64) + "%"
	}
	return strconv.FormatFloat(math.Round(share*100), 'f', -1, 64) + "%"
}

// Count formats a number with thousands separators.
func Count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
