package page

import (
	"io"
	"time"
)

// Chance is the source of the randomness of a room's draws.
type Chance string

// The sources, from weakest to strongest.
const (
	ChanceNone   Chance = "none"   // only the room's own key
	ChanceOther  Chance = "other"  // a beacon not known to be public
	ChancePublic Chance = "public" // drand's quicknet
)

// FairView is the data of the page that says what a room proves, and how to check it.
type FairView struct {
	Room   Room
	Lang   Lang
	Now    time.Time
	URL    string // address of the room
	Chance Chance
	Slots  bool       // the first window is cut into slots
	Report *time.Time // time of the organizer's report; nil: none
}

// fairPage is the template data of that page.
type fairPage struct {
	frame
	View *FairView
}

// Fair renders the page that says what a room proves, and how to check it.
func (p *Pages) Fair(w io.Writer, v FairView) error {
	f, err := p.set.frame(v.Lang, v.Now, &v.Room, "title.fair")
	if err != nil {
		return err
	}
	return p.set.execute(w, f.Lang, "fair", &fairPage{f, &v})
}
