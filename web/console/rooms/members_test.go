package rooms_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/internal/issuertest"
	"github.com/proofline/proofline/room"
)

var membersHidden = regexp.MustCompile(`(?s)<input type="hidden" name="([a-z_]+)" value="([^"]*)">`)

// TestMembers uploads a list of members: the page says how many there are and which rows are left out, and keeps the list
// once that is confirmed.
func TestMembers(t *testing.T) {
	t.Parallel()
	const path = "/console/rooms/sale/members"
	s := consoletest.New(t)
	own := &ownIssuer{key: issuertest.Signed("fans", 0).Method.Key}
	s.Control.Issuer, s.Control.Rooms.Issuer = own, own
	s.Create(consoletest.Owner, room.Config{Slug: "sale", Methods: []credential.Method{{Name: "fans", Kind: credential.Signed, Key: "own"}},
		Lanes: []room.LaneRule{{Name: "fans", Weight: 1, Needs: []string{"fans"}}}})
	upload := func(text string, fields ...string) consoletest.Answer {
		t.Helper()
		return s.Upload(consoletest.Operator, path, []consoletest.File{{Field: "file", Content: text}}, append([]string{"method", "fans"}, fields...)...)
	}
	s.Get(consoletest.Operator, "/console/rooms/sale/codes").Want(http.StatusOK).Has(`href="` + path + `"`)
	s.Get(consoletest.Operator, path).Want(http.StatusOK).Has("<option>fans</option>")
	for text, want := range map[string]string{
		"":                             "must have a row with the names",
		"number\n":                     "must have a row with the names",
		"fan@example.com\nb@c.example": "must begin with the names",
		"number,birthday\n1\n":         "wrong number of fields",
	} {
		upload(text).Want(http.StatusBadRequest).Has(want)
	}
	const list = "Number;Birthday\n17;1980-01-02\n18;1990-03-04\n17;1980-01-02\n"
	checked := upload(list).Want(http.StatusOK).Has("Use this list of 2 members?", "Visitors are asked for: Number, Birthday.", "left out: 4.")
	if own.members != nil {
		t.Fatal("the list is kept before it is confirmed")
	}
	var fields []string
	for _, match := range membersHidden.FindAllStringSubmatch(checked.Body, -1) {
		fields = append(fields, match[1], match[2])
	}
	s.Do(consoletest.Viewer, http.MethodPost, path, consoletest.Form(fields...)).Want(http.StatusForbidden)
	s.Upload(consoletest.Operator, path, nil, fields...).Want(http.StatusOK).Has("2 members can be confirmed").Lacks("1980-01-02")
	if len(own.members) != 3 || strings.Join(own.members[1], " ") != "18 1990-03-04" {
		t.Errorf("kept %v", own.members)
	}
	own.hasCodes = true
	upload(list).Want(http.StatusBadRequest).Has("codes were made for this method before")
	s.Get(consoletest.Operator, "/console/activity?object=sale").Want(http.StatusOK).Has("replaced the members of a method").Lacks("1980-01-02")
}

// SetMembers implements [control.Issuer].
func (o *ownIssuer) SetMembers(_, _ string, _ []string, rows [][]string, check bool) (m control.Members, err error) {
	if o.hasCodes {
		return m, control.ErrCodes
	}
	seen := map[string]bool{}
	for n, row := range rows {
		if text := strings.Join(row, "\n"); seen[text] {
			m.LeftOut = append(m.LeftOut, n+1)
		} else {
			seen[text] = true
			m.Count++
		}
	}
	if !check {
		o.members = rows
	}
	return m, nil
}
