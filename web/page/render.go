package page

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"slices"
	"time"
)

// frame is the data around the <main> of every page.
type frame struct {
	*speaker
	clock
	Room    *Room   // nil outside of rooms
	Title   string  // title of the document
	Refresh int     // reload interval in seconds; 0: never
	Next    string  // path to load then; empty: the same page
	Site    string  // the server's origin, for link previews; empty: none
	Inline  *Inline // set in previews
}

func (s *set) frame(l Lang, now time.Time, r *Room, title string) (frame, error) {
	speaker, ok := s.speakers[l]
	if !ok {
		speaker = s.speakers[languages[0]]
	}
	m, err := speaker.message(title)
	words := m.texts["other"]
	if r != nil {
		words += " – " + r.Title
	}
	return frame{speaker: speaker, clock: clock{now: now, zone: r.zone()}, Room: r, Title: words, Site: r.site()}, err
}

func (r *Room) zone() *time.Location {
	if r == nil {
		return nil
	}
	return r.Zone
}

// site returns the origin of the room's page, or "" if the room has no address.
func (r *Room) site() string {
	if r == nil {
		return ""
	}
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// Address returns the canonical URL of the page, or "" if unknown.
func (f frame) Address() string {
	if f.Room == nil {
		return f.Site
	}
	return f.Room.URL
}

// execute renders a page and writes it; if rendering fails, it writes nothing.
func (s *set) execute(w io.Writer, l Lang, name string, data any) error {
	var page bytes.Buffer
	if err := s.templates[l].ExecuteTemplate(&page, name, data); err != nil {
		return fmt.Errorf("render page: %w", err)
	}
	if _, err := page.WriteTo(w); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// Path returns the path of the room's page.
func (r *Room) Path() string { return "/r/" + url.PathEscape(r.Slug) }

// HasLogo reports whether the header shows a logo, which replaces the name of the organization.
func (f frame) HasLogo() bool {
	if f.Inline != nil {
		return f.Inline.Image() != ""
	}
	return f.Room != nil && f.Room.Logo != ""
}

// RunBy returns the text that names the organization, or "" if unknown.
func (f frame) RunBy() (template.HTML, error) {
	if f.Room == nil || f.Room.Organizer == "" {
		return "", nil
	}
	return f.Say("organizer.by", "name", f.OrganizerName())
}

// OrganizerName returns the name of the organization, or "" if unknown.
func (f frame) OrganizerName() template.HTML {
	if f.Room == nil || f.Room.Organizer == "" {
		return ""
	}
	return trusted("<bdi>" + template.HTMLEscapeString(f.Room.Organizer) + "</bdi>")
}

// AppealLink returns the link to the contact for visitors whose place was revoked.
func (f frame) AppealLink() template.HTML {
	return trusted(`<a href="` + template.HTMLEscapeString(f.Room.AppealURL) +
		`" target="_blank" rel="noopener noreferrer" data-appeal><bdi dir="ltr">` + template.HTMLEscapeString(f.Room.Appeal) + `</bdi></a>`)
}

// Offers reports whether visitors can choose language l.
func (f frame) Offers(l Lang) bool {
	return f.Room == nil || len(f.Room.Offered) == 0 || slices.Contains(f.Room.Offered, l)
}

func (s *set) visitor(w io.Writer, v View) error { return s.line(w, "visitor", v, nil) }

func (s *set) preview(w io.Writer, v View, in *Inline) error { return s.line(w, "visitor", v, in) }

func (s *set) fragment(w io.Writer, v View) error { return s.line(w, "line", v, nil) }

func (s *set) line(w io.Writer, name string, v View, in *Inline) error {
	f, err := s.frame(v.Lang, v.Now, &v.Room, "title."+string(v.State))
	if err != nil {
		return err
	}
	f.Inline, f.seconds = in, v.Ticket.isBrief()
	p := linePage{frame: f, View: &v}
	if p.Changes() {
		p.Refresh = int(v.Refresh / time.Second)
	}
	return s.execute(w, f.Lang, name, &p)
}

func (s *set) check(w io.Writer, v CheckView) error {
	f, err := s.frame(v.Lang, v.Now, &v.Room, "title.check")
	if err != nil {
		return err
	}
	f.seconds = v.Ticket.isBrief()
	return s.execute(w, f.Lang, "check", &checkPage{f, v.Ticket})
}

func (s *set) failure(w io.Writer, v ErrorView) error {
	f, err := s.frame(v.Lang, time.Time{}, v.Room, "error."+string(v.Kind)+".heading")
	if err != nil {
		return err
	}
	if v.After > 0 {
		f.Refresh, f.Next = v.After, v.Again
	}
	return s.execute(w, f.Lang, "error", &errorPage{f, &v})
}
