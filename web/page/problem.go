package page

import "html/template"

// errorPage is an error for people.
type errorPage struct {
	frame
	Error *ErrorView
}

// Heading is what happened, in a few words.
func (p *errorPage) Heading() (template.HTML, error) {
	return p.Say("error." + string(p.Error.Kind) + ".heading")
}

// Text says what to do.
func (p *errorPage) Text() (template.HTML, error) {
	return p.Say("error." + string(p.Error.Kind) + ".text")
}
