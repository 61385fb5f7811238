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

// KindOf returns the kind of the page for a problem, named as in PROBLEMS.md; false if its HTTP status says it.
func KindOf(problem string) (Kind, bool) {
	kind, ok := map[string]Kind{
		"network-limit": Crowded, "room-limit": Limited, "server-limit": Limited, "verdict": Suspected, "full": NoRoom,
		"credential-malformed": Unproven, "credential-unknown-method": Unproven, "credential-missing": Unproven,
		"credential-invalid": Unproven, "credential-used": Used, "method-full": Spent, "records-missing": Missing,
		"records-lost": Lost,
	}[problem]
	return kind, ok
}
