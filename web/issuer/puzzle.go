package issuer

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/web/issuer/puzzle"
	"github.com/proofline/proofline/web/limit"
)

// puzzleTime is the time to solve a puzzle, and what a tap on "More time" gives, as often as a visitor likes. A minute
// before its end style.css shows a warning.
const puzzleTime = 5 * time.Minute

// asked is a puzzle that a visitor is shown. It travels sealed: who knows the seed knows what fits.
type asked struct {
	ID    string // of the form, which can be sent once
	Kind  puzzle.Kind
	Seed  []byte
	Until int64 // Unix time
}

// newPuzzle replaces a flow's puzzle, and returns its page.
func (s *Site) newPuzzle(r *http.Request, o *Offer, f *flow, kind puzzle.Kind) (*view, error) {
	f.Puzzle = &asked{Kind: kind, Seed: make([]byte, len(puzzle.Seed{}))}
	_, _ = rand.Read(f.Puzzle.Seed) // never fails
	return s.puzzleForm(r, o, f, 0)
}

// puzzleForm returns the page of a flow's puzzle, with a form of its own and all the time from now on.
func (s *Site) puzzleForm(r *http.Request, o *Offer, f *flow, picks puzzle.Picks) (*view, error) {
	f.Puzzle.ID, f.Puzzle.Until = secret(), s.Now().Add(puzzleTime).Unix()
	f.Until = s.Now().Add(flowLife).Unix()
	sealed, err := s.seal(solving, f)
	if err != nil {
		return nil, err
	}
	return &view{Page: "puzzle", Offer: o, Flow: sealed, Puzzle: &puzzleView{s.puzzleOf(r, f), picks}}, nil
}

// puzzleOf returns a flow's puzzle in the visitor's language.
func (s *Site) puzzleOf(r *http.Request, f *flow) *puzzle.Puzzle {
	return puzzle.New(f.Puzzle.Kind, puzzle.Seed(f.Puzzle.Seed), s.words.of(r).say)
}

// solve receives the form of a puzzle: what is ticked, or the wish for more time or for another puzzle.
func (s *Site) solve(w http.ResponseWriter, r *http.Request, o *Offer) error {
	f, err := s.form(solving, r, o)
	if err != nil {
		return err
	}
	if kind := puzzle.Kind(r.PostFormValue("kind")); slices.Contains(puzzle.Kinds(), kind) {
		v, err := s.newPuzzle(r, o, f, kind)
		if err != nil {
			return err
		}
		s.show(w, r, http.StatusOK, v)
		return nil
	}
	p := s.puzzleOf(r, f)
	picks, ok := p.ParsePicks(r.PostForm["pick"])
	if !ok {
		return errForm
	}
	again := func(why error) error { // with another puzzle
		v, err := s.newPuzzle(r, o, f, p.Kind)
		if err != nil {
			return err
		}
		return &retry{why, v}
	}
	if r.PostFormValue("more") != "" {
		if err := s.sent.take(f.Puzzle, false, s.Now()); err != nil {
			return again(err)
		}
		v, err := s.puzzleForm(r, o, f, picks)
		if err != nil {
			return err
		}
		v.Note = "puzzle.extended"
		s.show(w, r, http.StatusOK, v)
		return nil
	}
	solved := p.IsSolved(picks)
	if err := s.sent.take(f.Puzzle, solved, s.Now()); err != nil {
		return again(err)
	}
	if err := s.attempt(r, solved, errPuzzle); errors.Is(err, errPuzzle) {
		return again(err)
	} else if err != nil {
		return &retry{err, &view{Page: "puzzle", Puzzle: &puzzleView{p, picks}}}
	}
	if err := s.Limits.Take(s.Clients.Of(r), limit.Joins, 1); err != nil {
		return &retry{err, &view{Page: "puzzle", Puzzle: &puzzleView{p, picks}}}
	}
	s.Log.Info("solved", "offer", o.Name, "kind", p.Kind)
	return s.finish(w, r, o, f, f.solver())
}

// solver returns the account of a solved puzzle. It is the ticket, so a ticket has one nullifier, however often its
// holder comes. Blind requests have no ticket: there it is the puzzle.
func (f *flow) solver() string {
	if f.Request.Blinded != nil {
		return string(ByPuzzle) + unit + f.Puzzle.ID
	}
	return string(ByPuzzle) + unit + fairness.Ticket(f.Request.Ticket).String()
}

// puzzleView is a puzzle with what is ticked.
type puzzleView struct {
	*puzzle.Puzzle
	picks puzzle.Picks
}

// Ticked reports whether an option is ticked.
func (v *puzzleView) Ticked(option int) bool { return v.picks.Has(option) }

// Minutes is the time for the puzzle.
func (*puzzleView) Minutes() string { return strconv.Itoa(int(puzzleTime / time.Minute)) }

// Size is the width and height of pictures.
func (*puzzleView) Size() int { return puzzle.PictureSize }

// Others lists the other kinds.
func (v *puzzleView) Others() (kinds []puzzle.Kind) {
	return slices.DeleteFunc(puzzle.Kinds(), func(k puzzle.Kind) bool { return k == v.Kind })
}

// Audio is the address of the sound: the sound itself.
func (v *puzzleView) Audio() template.URL {
	return template.URL("data:audio/wav;base64," + base64.StdEncoding.EncodeToString(v.Sound)) //nolint:gosec // ours
}

// maxSent is the maximum number of forms that are remembered of the time of one puzzle.
const maxSent = 1_000_000

// sentForms remembers forms of puzzles until their time is over. Those of before the start are over, too, because they
// may have been sent.
type sentForms struct {
	began time.Time
	most  int

	mu           sync.Mutex
	since        time.Time       // of the newer ones
	newer, older map[string]bool // by ID: whether the puzzle was solved
}

func newSentForms(now time.Time) *sentForms {
	return &sentForms{began: now, most: maxSent, since: now, newer: map[string]bool{}}
}

// take records that a form was sent. It returns [errOver] if its time is over, or if it was sent before. A solved
// puzzle may be sent again, which gives the same credential again. With too many forms in a short time the error is
// [errAway].
func (s *sentForms) take(a *asked, solved bool, now time.Time) error {
	until := time.Unix(a.Until, 0)
	if now.After(until) || until.Add(-puzzleTime).Before(s.began.Truncate(time.Second)) {
		return errOver
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.since) > puzzleTime {
		s.since, s.newer, s.older = now, map[string]bool{}, s.newer
	}
	before, ok := s.newer[a.ID]
	if !ok {
		before, ok = s.older[a.ID]
	}
	switch {
	case ok && before && solved:
		return nil
	case ok:
		return errOver
	case len(s.newer) >= s.most:
		return errAway
	}
	s.newer[a.ID] = solved
	return nil
}
