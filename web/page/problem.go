package page

import "html/template"

// errorPage is the data of an error page.
type errorPage struct {
	frame
	Error *ErrorView
}

// Heading says in a few words what happened.
func (p *errorPage) Heading() (template.HTML, error) {
	return p.Say("error." + string(p.Error.Kind) + ".heading")
}

// Text says what to do.
func (p *errorPage) Text() (template.HTML, error) {
	return p.Say("error." + string(p.Error.Kind) + ".text")
}
