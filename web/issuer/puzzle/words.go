package puzzle

import (
	"math/rand/v2"
	"strings"
)

// words asks for the words of one group among words of others.
type words struct{}

// wordOptions is the number of words in a puzzle.
const wordOptions = 10

// groups has the messages with the question and the words of each group. A group has as many words in each language.
var groups = []struct{ question, words string }{
	{"puzzle.animals", "puzzle.animals_words"},
	{"puzzle.fruits", "puzzle.fruits_words"},
	{"puzzle.clothes", "puzzle.clothes_words"},
	{"puzzle.body", "puzzle.body_words"},
	{"puzzle.vehicles", "puzzle.vehicles_words"},
	{"puzzle.instruments", "puzzle.instruments_words"},
}

func (words) make(r *rand.Rand, say Say) *Puzzle {
	fits, asked := mark(r, wordOptions), r.IntN(len(groups))
	p := &Puzzle{Question: say(groups[asked].question), fits: fits}
	var right, wrong []string
	for i, g := range groups {
		if list := strings.Split(say(g.words), ", "); i == asked {
			right = list
		} else {
			wrong = append(wrong, list...)
		}
	}
	r.Shuffle(len(right), func(i, j int) { right[i], right[j] = right[j], right[i] })
	r.Shuffle(len(wrong), func(i, j int) { wrong[i], wrong[j] = wrong[j], wrong[i] })
	for i := range wordOptions {
		from := &wrong
		if fits.Has(i) {
			from = &right
		}
		p.Options = append(p.Options, Option{Label: (*from)[0]})
		*from = (*from)[1:]
	}
	return p
}
