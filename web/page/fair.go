package page

import (
	"io"
	"time"
)

// Chance is where the draws of a room get their randomness from.
type Chance string

// The kinds of chance, in the order of what they prove.
const (
	ChanceNone   Chance = "none"   // the room's own key alone
	ChanceOther  Chance = "other"  // a beacon that is not known to be public
	ChancePublic Chance = "public" // drand's quicknet
)

// FairView is the page that says what a room proves, and how to check it.
type FairView struct {
	Room   Room
	Lang   Lang
	Now    time.Time
	URL    string // of the room
	Chance Chance
	Report *time.Time // when the organizer's report was made; nil for none
}

// fairPage is that page.
type fairPage struct {
	frame
	View *FairView
}

// Fair writes the page that says what a room proves, and how to check it.
func (p *Pages) Fair(w io.Writer, v FairView) error {
	f, err := p.set.frame(v.Lang, v.Now, &v.Room, "title.fair")
	if err != nil {
		return err
	}
	return p.set.execute(w, f.Lang, "fair", &fairPage{f, &v})
}
