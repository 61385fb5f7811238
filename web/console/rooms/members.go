package rooms

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/listfile"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/format"
	"github.com/proofline/proofline/web/console/shell"
)

// members serves the page on which organizers upload the members whom the server's own issuer confirms.
type members struct{ control *control.Rooms }

func (h *members) routes() []shell.Route {
	return []shell.Route{
		shell.Get("/rooms/:slug/members", account.Operate, shell.OfRoom(h.control, h.show)),
		shell.Post("/rooms/:slug/members", account.Operate, shell.OfRoom(h.control, h.set)),
	}
}

// maxMembersUpload is the maximum size of a form with a list of members, in bytes.
const maxMembersUpload = 8 << 20

// namedRows is how many rows that are left out the page names.
const namedRows = 20

// membersPage is the data of the page.
type membersPage struct {
	Slug, Name string
	Methods    []string // for which the server's own issuer vouches
	Method     string
	Columns    string
	Text       string           // the list, to be sent again with the answer
	Found      *control.Members // after the check
	Saved      bool
}

// Most returns the maximum length of a list.
func (membersPage) Most() string { return format.Number(control.MaxMembers) }

// LeftOut names the rows that are left out, as a spreadsheet counts them.
func (p membersPage) LeftOut() string {
	var rows []string
	for _, n := range p.Found.LeftOut[:min(namedRows, len(p.Found.LeftOut))] {
		rows = append(rows, format.Number(n+1))
	}
	if more := len(p.Found.LeftOut) - len(rows); more > 0 {
		rows = append(rows, format.Number(more)+" more")
	}
	return strings.Join(rows, ", ")
}

func (h *members) page(r *room.Room) membersPage {
	return membersPage{Slug: r.Slug, Name: r.Snapshot().Title, Methods: h.control.OwnMethods(r)}
}

func (h *members) show(_ context.Context, x *shell.Request, r *room.Room) error {
	return x.Page("room-members", h.page(r))
}

// set reads a list of members, shows what it is, and keeps it once that is confirmed.
func (h *members) set(ctx context.Context, x *shell.Request, r *room.Room) error {
	if err := x.ReadUpload(maxMembersUpload); err != nil {
		return err
	}
	if x.IsElsewhere() {
		return shell.ErrSwitched
	}
	p := h.page(r)
	p.Method = x.FormWord("method")
	text, err := uploaded(x)
	if err != nil {
		return err
	}
	columns, rows, err := listfile.Table(text, control.MaxMembers)
	for i, wrong := range invalid.Problems(err) {
		invalid.Problems(err)[i] = invalid.Problem{Field: "file", Detail: wrong.Detail}
	}
	if err != nil {
		return x.Invalid("room-members", p, err)
	}
	found, err := h.control.SetMembers(ctx, x.Actor, r.Slug, p.Method, columns, rows, !x.IsConfirmed())
	if errors.Is(err, control.ErrCodes) {
		err = invalid.Field("file", "cannot be used: codes were made for this method before, and members cannot replace them")
	}
	if err != nil {
		return x.Invalid("room-members", p, err)
	}
	p.Found, p.Columns, p.Saved = &found, strings.Join(columns, ", "), x.IsConfirmed()
	if !p.Saved {
		p.Text = text
	}
	return x.Page("room-members", p)
}

// uploaded returns the uploaded file or, without one, the text in the form.
func uploaded(x *shell.Request) (string, error) {
	if form := x.Request().MultipartForm; form != nil {
		for _, header := range form.File["file"] {
			if header.Size == 0 {
				continue // no file was chosen
			}
			file, err := header.Open()
			if err != nil {
				return "", fmt.Errorf("read upload: %w", err)
			}
			content, err := io.ReadAll(file)
			return string(content), errors.Join(err, file.Close())
		}
	}
	return x.Form("text"), nil
}
