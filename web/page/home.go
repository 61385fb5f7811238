package page

import (
	"io"
	"time"
)

// HomeView is the page at the address of the server itself.
type HomeView struct {
	Lang    Lang
	Console string // path of the organizers' pages, empty for none
	Site    string // origin of the server
}

// homePage is that page.
type homePage struct {
	frame
	Console string
}

// Home writes the page at the address of the server itself.
func (p *Pages) Home(w io.Writer, v HomeView) error {
	f, err := p.set.frame(v.Lang, time.Time{}, nil, "title.home")
	if err != nil {
		return err
	}
	f.Site = v.Site
	return p.set.execute(w, f.Lang, "home", &homePage{f, v.Console})
}
