package page

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
)

//go:embed templates
var templateFiles embed.FS

// set is the parsed templates and what they refer to.
type set struct {
	files     map[string]string // built files by their plain names
	templates *template.Template
}

func parse(manifest []byte) (*set, error) {
	s := &set{}
	if err := json.Unmarshal(manifest, &s.files); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	for _, name := range []string{"page.js", "checker.js", "page.css"} {
		if s.files[name] == "" {
			return nil, fmt.Errorf("%w: %s", ErrManifest, name)
		}
	}
	var err error
	s.templates, err = template.ParseFS(templateFiles, "templates/*.html")
	return s, err
}

func (s *set) visitor(w io.Writer, v View) error { return s.templates.ExecuteTemplate(w, "visitor", v) }

func (s *set) fragment(w io.Writer, v View) error { return s.templates.ExecuteTemplate(w, "line", v) }

func (s *set) check(w io.Writer, v CheckView) error {
	return s.templates.ExecuteTemplate(w, "check", v)
}

func (s *set) failure(w io.Writer, v ErrorView) error {
	return s.templates.ExecuteTemplate(w, "error", v)
}
