package room

import "github.com/proofline/proofline/fairness"

// liveMark is a projection as it was before an append, which may fail.
type liveMark struct {
	state      fairness.Mark
	admissions []fairness.Time
	noShows    fairness.Position
	lastCall   fairness.Time
	cosigned   [][]uint32
	passed     passed
}

func (l *live) mark() *liveMark {
	return &liveMark{l.Mark(), l.admissions, l.noShows, l.lastCall, l.cosigned, l.passed}
}

// undo takes the projection back to what is stored. Reloading millions of entries would burden a database
// that is already in trouble.
func (l *live) undo(m *liveMark) {
	l.Undo(m.state)
	l.admissions, l.noShows, l.lastCall, l.cosigned, l.passed = m.admissions, m.noShows, m.lastCall, m.cosigned, m.passed
}
