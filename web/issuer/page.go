package issuer

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"strings"

	"golang.org/x/text/language"

	"github.com/proofline/proofline/web/limit"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed messages/*.json
var messageFiles embed.FS

// catalog holds the messages of one language by key. Placeholders are in braces.
type catalog map[string]string

// say returns a message. Values are pairs of a placeholder's name and its value.
func (c catalog) say(key string, values ...string) string {
	pairs := make([]string, 0, len(values))
	for i := 0; i+1 < len(values); i += 2 {
		pairs = append(pairs, "{"+values[i]+"}", values[i+1])
	}
	return strings.NewReplacer(pairs...).Replace(c[key])
}

// words has the messages of all languages, and chooses one for each request.
type words struct {
	tags      []language.Tag // English first
	catalogs  []catalog
	matcher   language.Matcher
	templates *template.Template
}

func newWords() (*words, error) {
	files, err := messageFiles.ReadDir("messages")
	if err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	w := &words{}
	for _, f := range files {
		text, err := messageFiles.ReadFile(path.Join("messages", f.Name()))
		if err != nil {
			return nil, fmt.Errorf("read messages: %w", err)
		}
		tag, c := language.MustParse(strings.TrimSuffix(f.Name(), ".json")), catalog{}
		if err := json.Unmarshal(text, &c); err != nil {
			return nil, fmt.Errorf("read messages: %s: %w", f.Name(), err)
		}
		if tag == language.English {
			w.tags, w.catalogs = append([]language.Tag{tag}, w.tags...), append([]catalog{c}, w.catalogs...)
		} else {
			w.tags, w.catalogs = append(w.tags, tag), append(w.catalogs, c)
		}
	}
	w.matcher = language.NewMatcher(w.tags)
	w.templates, err = template.New("").Funcs(template.FuncMap{
		"say": func(v *view, key string, values ...string) string { return v.Words.say(key, values...) },
	}).ParseFS(templateFiles, "templates/*.html")
	return w, err
}

// choose returns the language that the room's page has, or else that the browser prefers.
func (w *words) choose(r *http.Request) int {
	_, i := language.MatchStrings(w.matcher, r.PostFormValue("lang"), r.Header.Get("Accept-Language"))
	return i
}

// of returns the messages of the language that a browser prefers.
func (w *words) of(r *http.Request) catalog { return w.catalogs[w.choose(r)] }

// view is what the templates show.
type view struct {
	Page     string // name of the template
	Offer    *Offer // nil on pages of none
	Text     string // key of a message
	Flow     string // sealed
	Fields   []field
	Address  string
	Link     string // of the provider
	Provider string
	Captcha  *Captcha    // on the pages of a CAPTCHA
	Action   string      // of the widget
	Options  string      // of WebAuthn, on the pages with a passkey
	Hidden   [][2]string // fields of the form that returns to the room
	Puzzle   *puzzleView
	Note     string // key of a message that is no failure
	IsLot    bool   // the place that is confirmed gets one more lot

	Lang    language.Tag
	Words   catalog
	Issuer  string
	Base    string   // path of the site
	Methods []string // lines of policies
	Key     string   // verifier key of the signed count
}

// field is one that a visitor fills in. Without a label it is for a code.
type field struct{ Name, Label, Value string }

// Hosts are the hosts of the CAPTCHA service.
func (v *view) Hosts() string { return strings.Join(v.Captcha.Hosts, ", ") }

// Return is the address of the form that returns to the room.
func (v *view) Return() string { return v.Offer.RoomURL.JoinPath("credential").String() }

// Room is the title and the host of the room, for visitors.
func (v *view) Room() string {
	if v.Offer.Title != "" {
		return v.Offer.Title + " (" + v.Offer.RoomURL.Host + ")"
	}
	return v.Offer.RoomURL.Host
}

// Brand is how the page looks. Pages with scripts load nothing else.
func (v *view) Brand() Brand {
	if v.Offer == nil || v.Page == "widget" || v.Options != "" {
		return Brand{}
	}
	return v.Offer.Brand
}

// nameFor returns the issuer's name for visitors of an offer; nil: of no offer.
func (s *Site) nameFor(o *Offer) string {
	if o != nil && o.Organizer != "" {
		return o.Organizer
	}
	return s.Name
}

// show writes a page.
func (s *Site) show(w http.ResponseWriter, r *http.Request, status int, v *view) {
	i := s.words.choose(r)
	v.Lang, v.Words, v.Issuer, v.Base = s.words.tags[i], s.words.catalogs[i], s.nameFor(v.Offer), s.URL.Path
	var page bytes.Buffer
	if err := s.words.templates.ExecuteTemplate(&page, v.Page+".html", v); err != nil {
		s.Log.Error("cannot render page", "page", v.Page, "err", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	switch {
	case v.Page == "widget":
		w.Header().Set("Content-Security-Policy", s.widgetPolicy(v.Offer))
		// Windows that the widget's scripts open get pages of this server in another browsing context group, because
		// those pages say same-origin. So the scripts cannot reach into them.
		w.Header().Set("Cross-Origin-Opener-Policy", "unsafe-none")
	case v.Options != "":
		w.Header().Set("Content-Security-Policy", s.passkeys.ceremonyPolicy(v.Offer))
	case v.Offer != nil:
		allowed := v.Offer.returns()
		if v.Puzzle != nil && v.Puzzle.Sound != nil {
			allowed += "; media-src data:"
		}
		w.Header().Set("Content-Security-Policy", allowed)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Vary", "Accept-Language")
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes())
}

// home shows what this issuer vouches for.
func (s *Site) home(w http.ResponseWriter, r *http.Request) {
	if err := s.Limits.Take(s.Clients.Of(r), limit.Pages, 1); err != nil {
		s.fail(w, r, nil, err)
		return
	}
	v := &view{Page: "home"}
	for _, o := range s.Offers {
		v.Methods = append(v.Methods, "method "+string(s.Issuer.Method(o.Offer).AppendText(nil)))
	}
	var err error
	if v.Key, err = s.Issuer.VerifierKey(s.noteName()); err != nil {
		s.fail(w, r, nil, err)
		return
	}
	s.show(w, r, http.StatusOK, v)
}

// about tells a visitor who opens an offer's address to begin at the room.
func (s *Site) about(w http.ResponseWriter, r *http.Request, o *Offer) error {
	s.show(w, r, http.StatusOK, &view{Page: "about", Offer: o})
	return nil
}
