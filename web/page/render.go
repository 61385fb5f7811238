package page

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"strconv"
	"time"
)

//go:embed templates/*.html
var templateFiles embed.FS

// set is the parsed templates and what they refer to.
type set struct {
	files     map[string]string // built files by their plain names
	speakers  map[Lang]*speaker
	templates *template.Template
}

// The built files that pages refer to.
const (
	scriptFile  = "page.js"
	checkerFile = "checker.js"
	styleFile   = "page.css"
	iconFile    = "icon.svg"
)

func parse(manifest []byte) (*set, error) {
	s := &set{}
	if err := json.Unmarshal(manifest, &s.files); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	for _, name := range []string{scriptFile, checkerFile, styleFile, iconFile} {
		if s.files[name] == "" {
			return nil, fmt.Errorf("%w: %s", ErrManifest, name)
		}
	}
	var err error
	if s.speakers, err = speakers(); err != nil {
		return nil, err
	}
	if s.templates, err = template.ParseFS(templateFiles, "templates/*.html"); err != nil {
		return nil, fmt.Errorf("parse templates: %w", err)
	}
	return s, nil
}

// frame is what every page has around its <main>.
type frame struct {
	*speaker
	clock
	Room    *Room  // nil outside of rooms
	Title   string // of the document
	Refresh int    // seconds after which the page loads itself anew, 0 for never
	Choices []Choice
	files   map[string]string
}

// Choice is one language to choose.
type Choice struct {
	Lang Lang
	Name string // in the language itself
	Dir  string
	Link string
	Now  bool
}

func (s *set) frame(l Lang, now time.Time, r *Room, title string) (frame, error) {
	speaker, ok := s.speakers[l]
	if !ok {
		speaker = s.speakers[languages[0]]
	}
	words, err := speaker.Plain(title)
	if r != nil {
		words += " – " + r.Title
	}
	return frame{speaker: speaker, clock: clock{now}, Room: r, Title: words, files: s.files}, err
}

// File returns the path of a built file.
func (f *frame) File(name string) string { return "/assets/" + f.files[name] }

// choices lists the languages, with links to the same page.
func (s *set) choices(f *frame) ([]Choice, error) {
	list := make([]Choice, len(languages))
	for i, l := range languages {
		other := s.speakers[l]
		name, err := other.Plain("language")
		if err != nil {
			return nil, err
		}
		link := "?lang=" + string(l)
		if f.Refresh > 0 {
			link += "&refresh=" + strconv.Itoa(f.Refresh)
		}
		list[i] = Choice{Lang: l, Name: name, Dir: other.Dir(), Link: link, Now: l == f.Lang}
	}
	return list, nil
}

// execute writes a page whole or not at all.
func (s *set) execute(w io.Writer, name string, data any) error {
	var page bytes.Buffer
	if err := s.templates.ExecuteTemplate(&page, name, data); err != nil {
		return fmt.Errorf("render page: %w", err)
	}
	if _, err := page.WriteTo(w); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// Path returns the path of the room's page.
func (r *Room) Path() string { return "/r/" + url.PathEscape(r.Slug) }

func (s *set) visitor(w io.Writer, v View) error { return s.line(w, "visitor", v) }

func (s *set) fragment(w io.Writer, v View) error { return s.line(w, "line", v) }

func (s *set) line(w io.Writer, name string, v View) error {
	f, err := s.frame(v.Lang, v.Now, &v.Room, "title."+string(v.State))
	if err != nil {
		return err
	}
	p := linePage{frame: f, View: &v}
	if p.Changes() {
		p.Refresh = int(v.Refresh / time.Second)
	}
	if p.Choices, err = s.choices(&p.frame); err != nil {
		return err
	}
	return s.execute(w, name, &p)
}

func (s *set) check(w io.Writer, v CheckView) error {
	f, err := s.frame(v.Lang, v.Now, &v.Room, "title.check")
	if err != nil {
		return err
	}
	if f.Choices, err = s.choices(&f); err != nil {
		return err
	}
	return s.execute(w, "check", &checkPage{f, v.Ticket})
}

func (s *set) failure(w io.Writer, v ErrorView) error {
	f, err := s.frame(v.Lang, time.Time{}, v.Room, "error."+string(v.Kind)+".heading")
	if err != nil {
		return err
	}
	return s.execute(w, "error", &errorPage{f, &v})
}
