// Package codesheet lays out codes for visitors as slips to print and cut.
package codesheet

import (
	"bytes"
	_ "embed"
	"html/template"
	"time"

	"github.com/proofline/proofline/internal/qrcode"
)

// Sheet is a sheet of slips.
type Sheet struct {
	Title   string // above each code
	Address string // of the room, with its QR code; empty: not known
	Opens   string // when the room opens, with the time zone; empty: not known, or it has
	Codes   []string
}

// Opens describes when a room opens, for [Sheet]; empty: it has opened by now.
func Opens(opens, now time.Time, zone *time.Location) string {
	if !opens.After(now) {
		return ""
	}
	layout := "2 Jan 2006, 15:04"
	if opens.Second() != 0 {
		layout += ":05"
	}
	return opens.In(zone).Format(layout) + " (" + zone.String() + ")"
}

//go:embed sheet.html
var text string

var sheet = template.Must(template.New("sheet").Parse(text))

// layout is the data of the template.
type layout struct {
	*Sheet
	QR *qrcode.Code // nil: there is no address, or it is too long
}

func (s *Sheet) render(name string) ([]byte, error) {
	l := layout{Sheet: s}
	if code, err := qrcode.Encode(s.Address); s.Address != "" && err == nil {
		l.QR = &code
	}
	var b bytes.Buffer
	err := sheet.ExecuteTemplate(&b, name, l)
	return b.Bytes(), err
}

// Slips returns the slips as a list, for a page with styles for it.
func (s *Sheet) Slips() (template.HTML, error) {
	list, err := s.render("slips")
	return template.HTML(list), err //nolint:gosec // html/template made it
}

// Page returns a page of the slips alone.
func (s *Sheet) Page() ([]byte, error) { return s.render("page") }
