package page

import (
	"io"
	"time"
)

// HomeView is the data of the page at the server's own address.
type HomeView struct {
	Lang    Lang
	Console string // path of the organizers' pages; empty: none
	Site    string // the server's origin
}

// homePage is the template data of that page.
type homePage struct {
	frame
	Console string
}

// Home renders the page at the server's own address.
func (p *Pages) Home(w io.Writer, v HomeView) error {
	f, err := p.set.frame(v.Lang, time.Time{}, nil, "title.home")
	if err != nil {
		return err
	}
	f.Site = v.Site
	return p.set.execute(w, f.Lang, "home", &homePage{f, v.Console})
}
