package simulate

import (
	"fmt"
	"time"
)

// atTheDoor describes what the plan's own door does; nothing for an open door.
func atTheDoor(p *Plan, r *Result) []string {
	robots, found := r.Group(Machines)
	if p.Door.Kind == Open || !found {
		return nil
	}
	list := []string{sentence(heldBy(&p.Door, r, &robots))}
	people, _ := r.Group(Humans)
	switch p.Door.Kind {
	case Work:
		faster := Figure(float64(p.Door.CoreRate) / float64(p.Door.PhoneRate))
		return append(list, fmt.Sprintf("A core of an operator works %s times as fast as an old phone: work delays joins, and does not tell people from bots.", faster))
	case Accounts:
		return append(list, "An operator has at most as many places as accounts: the door is worth what an account costs at its issuer.")
	case Codes:
		if people.Barred > 0 {
			list = append(list, fmt.Sprintf("The rules refuse %s people: they were given no code, or sold it.", Count(people.Barred)))
		}
	case Open:
	}
	return list
}

// doors describes what bots hold with each door.
func doors(p *Plan, rows []Row) []string {
	var list []string
	for _, row := range rows {
		one := p.with(&row)
		if robots, found := row.Result.Group(Machines); row.Door != "" && found {
			list = append(list, sentence(heldBy(&one.Door, row.Result, &robots)))
		}
	}
	return list
}

// heldBy describes the places and tickets of bots, and what they cost.
func heldBy(d *Door, r *Result, robots *Group) string {
	label := d.Label()
	if d.Kind == Open {
		label = "an open door"
	}
	text := fmt.Sprintf("%s: bots hold %s in line", label, figures(float64(robots.Places), "place"))
	if r.Front > 0 {
		text += fmt.Sprintf(", %s of the first %s (%s)", Count(robots.Front), Count(r.Front),
			Percent(float64(robots.Front)/float64(r.Front)))
	}
	if r.Sold > 0 {
		text += fmt.Sprintf(", and get %s of the tickets", Percent(robots.Share))
	}
	if robots.Barred > 0 {
		text += fmt.Sprintf("; the rules refuse their other %s", figures(float64(robots.Barred), "join"))
	}
	operator, person := d.prices(r, robots)
	if d.Kind == Open {
		return text + ". That costs an operator nothing."
	}
	return fmt.Sprintf("%s. That takes an operator %s, and a person %s.", text, operator, person)
}

// Prices returns what the bots of an operator pay for their places with the door of a row of [CompareDoors], on
// average, and what a person pays.
func (p *Plan) Prices(row *Row) (operator, person string) {
	one := p.with(row)
	robots, _ := row.Result.Group(Machines)
	return one.Door.prices(row.Result, &robots)
}

func (d *Door) prices(r *Result, robots *Group) (operator, person string) {
	operators := float64(max(r.Operators, 1))
	each := float64(robots.Cost.Shown) / operators
	switch d.Kind {
	case Work:
		work := seconds(time.Duration(robots.Cost.Work).Seconds() / operators)
		return work.Words() + " of computing on one core", seconds(d.phoneTime()).Words() + " on an old phone"
	case Accounts:
		return figures(each, "account"), "one"
	case Codes:
		return figures(each, "code") + " that people sold", "one"
	case Open:
	}
	return "nothing", "nothing"
}

func figures(x float64, noun string) string {
	if x == 1 {
		return "1 " + noun
	}
	return Figure(x) + " " + noun + "s"
}
