package live

import (
	"fmt"
	"strings"

	"github.com/proofline/proofline/console/rehearse"
	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/web/console/format"
)

// scriptWords says what a script of a rehearsal asked for, what it got, and what the simulator predicts.
func scriptWords(r rehearse.ScriptResult) []string {
	from := "one machine"
	if r.Networks > 1 {
		from = counted(r.Networks, "network")
	}
	asks := fmt.Sprintf("It asks for %s from %s. %s", counted(r.Tickets, "ticket"), from, scriptDoor(r))
	got := fmt.Sprintf("It got %s in line.", counted(r.Joined, "place"))
	if r.Failed > 0 {
		got += fmt.Sprintf(" %s refused: %s.", wereRefused(r.Failed), strings.Join(refusals(r), "; "))
	}
	first := "No place has been drawn yet."
	if r.Drawn > 0 {
		first = fmt.Sprintf("Of the first %s it has %s: %s.", counted(r.Drawn, "place"), format.Number(r.Ahead),
			simulate.Percent(r.Share()))
	}
	return []string{asks, got, first + " The simulator, which knows the windows and the door but no limits of networks, " +
		"predicts " + simulate.Percent(r.Predicted) + "."}
}

// scriptDoor says what a join needs, and what the script has.
func scriptDoor(r rehearse.ScriptResult) string {
	needs := fmt.Sprintf("A join needs %s", strings.Join(r.Needs, " and "))
	switch r.Door.Kind {
	case simulate.Work:
		return fmt.Sprintf("%s: %s of the script do it for all of its tickets.", needs,
			counted(r.Door.Cores, "processor core"))
	case simulate.Accounts:
		return fmt.Sprintf("%s, and the script has %s.", needs, counted(r.Holds, "account"))
	case simulate.Codes:
		return fmt.Sprintf("%s, and the script bought %s.", needs, counted(r.Holds, "code"))
	case simulate.Open:
	}
	return "A join needs nothing."
}

// refusals lists why joins of the script were refused.
func refusals(r rehearse.ScriptResult) (list []string) {
	for why, words := range [...]string{
		rehearse.ByAccount: "because their account or code had a place",
		rehearse.ByLimit:   "because the room takes no more of these credentials",
		rehearse.ByNetwork: "because their network had reached its limit",
		rehearse.TooLate:   "because the room took no more joins",
	} {
		if n := r.Refused[why]; n > 0 {
			list = append(list, format.Number(n)+" "+words)
		}
	}
	return list
}

func wereRefused(n int) string {
	if n == 1 {
		return "1 join was"
	}
	return format.Number(n) + " joins were"
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return format.Number(n) + " " + noun + "s"
}
