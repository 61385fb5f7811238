package page

import (
	"html/template"
	"net/http"
)

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

// KindOf returns the kind of the page for a problem, named as in PROBLEMS.md, with an HTTP status.
func KindOf(problem string, status int) Kind {
	switch problem {
	case "network-limit":
		return Crowded
	case "room-limit", "server-limit":
		return Limited
	case "verdict":
		return Suspected
	case "full":
		return NoRoom
	case "credential-malformed", "credential-unknown-method", "credential-missing", "credential-invalid":
		return Unproven
	case "credential-used":
		return Used
	case "method-full":
		return Spent
	case "records-missing":
		return Missing
	case "records-lost":
		return Lost
	}
	switch status {
	case http.StatusNotFound:
		return NotFound
	case http.StatusConflict:
		return Early
	case http.StatusGone:
		return Gone
	case http.StatusServiceUnavailable:
		return Busy
	}
	if status >= http.StatusInternalServerError {
		return Failed
	}
	return Refused
}
