package page

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"strings"
	texttemplate "text/template"
)

// The templates are executed in two steps. Actions in [[ ]] depend only on the language and are
// executed once, when the program starts; those in {{ }} depend on the visit. Most texts of a page
// are of the first kind, and cost nothing at rendering.
//
//go:embed templates/*.html
var templateFiles embed.FS

// Built files that the pages use.
const (
	scriptFile  = "page.js"
	checkFile   = "check.js"
	checkerFile = "checker.js"
	blindFile   = "blind.js"
	workFile    = "work.js"
	solverFile  = "solver.js"
	styleFile   = "page.css"
	iconFile    = "icon.svg"
)

// set holds the parsed templates and the messages of each language.
type set struct {
	files     map[string]string // names of built files by their plain names
	speakers  map[Lang]*speaker
	templates map[Lang]*template.Template
}

func parse(manifest []byte) (*set, error) {
	s := &set{templates: map[Lang]*template.Template{}}
	if err := json.Unmarshal(manifest, &s.files); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	for _, name := range []string{
		scriptFile, checkFile, checkerFile, blindFile, workFile, solverFile, styleFile, iconFile,
	} {
		if s.files[name] == "" {
			return nil, fmt.Errorf("%w: %s", ErrManifest, name)
		}
	}
	var err error
	if s.speakers, err = speakers(); err != nil {
		return nil, err
	}
	for _, l := range languages {
		if s.templates[l], err = s.translate(s.speakers[l]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// translate returns the templates in one language.
func (s *set) translate(to *speaker) (*template.Template, error) {
	words, err := texttemplate.New("").Delims("[[", "]]").ParseFS(templateFiles, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("parse templates: %w", err)
	}
	all := template.New("")
	for _, file := range words.Templates() {
		var source strings.Builder
		if err := file.Execute(&source, &translation{to, s}); err != nil {
			return nil, fmt.Errorf("translate templates to %s: %w", to.Lang, err)
		}
		if _, err := all.Parse(source.String()); err != nil {
			return nil, fmt.Errorf("parse templates of %s: %w", to.Lang, err)
		}
	}
	return all, nil
}

// translation is the data of the actions in [[ ]].
type translation struct {
	*speaker
	set *set
}

// File returns the path of a built file.
func (t *translation) File(name string) string { return "/assets/" + t.set.files[name] }

// Choices returns the languages to choose from.
func (t *translation) Choices() []*speaker {
	list := make([]*speaker, len(languages))
	for i, l := range languages {
		list[i] = t.set.speakers[l]
	}
	return list
}
