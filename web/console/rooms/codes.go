package rooms

import (
	"context"
	"strconv"
	"strings"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/format"
	"github.com/proofline/proofline/web/console/shell"
)

// codes serves the page on which organizers make codes that confirm visitors.
type codes struct{ control *control.Rooms }

func (h *codes) routes() []shell.Route {
	return []shell.Route{
		shell.Get("/rooms/:slug/codes", account.Operate, shell.OfRoom(h.control, h.show)),
		shell.Post("/rooms/:slug/codes", account.Operate, shell.OfRoom(h.control, h.make)),
	}
}

// codesPage is the data of the page.
type codesPage struct {
	Slug, Name string
	Methods    []string // for which the server's own issuer vouches
	Method     string
	Count      string
	Address    string   // of the room
	Made       []string // new codes, to print
}

// usualCount is proposed for methods whose room takes any number of credentials.
const usualCount = 500

// Most returns the maximum number of codes made at once.
func (codesPage) Most() string { return format.Number(control.MaxCodes) }

func (h *codes) page(r *room.Room) codesPage {
	p := codesPage{Slug: r.Slug, Name: r.Snapshot().Title, Methods: h.control.OwnMethods(r), Address: r.URL}
	count := usualCount
	for _, m := range r.Policy().Methods {
		if len(p.Methods) > 0 && m.Name == p.Methods[0] && m.Limit > 0 {
			count = int(min(m.Limit, control.MaxCodes))
		}
	}
	p.Count = strconv.Itoa(count)
	return p
}

func (h *codes) show(_ context.Context, x *shell.Request, r *room.Room) error {
	return x.Page("room-codes", h.page(r))
}

// make answers with a page or a file of new codes, which is their only copy.
func (h *codes) make(ctx context.Context, x *shell.Request, r *room.Room) error {
	page, method := h.page(r), x.FormWord("method")
	page.Method, page.Count = method, x.FormWord("count")
	count, err := strconv.Atoi(page.Count)
	if err != nil {
		return x.Invalid("room-codes", page, invalid.Field("count", "must be a whole number"))
	}
	made, _, err := h.control.MakeCodes(ctx, x.Actor, r.Slug, method, count)
	if err != nil {
		return x.Invalid("room-codes", page, err)
	}
	if x.Form("do") == "sheet" {
		page.Made = made
		return x.Page("room-codes-sheet", page)
	}
	return x.Download(r.Slug+"-"+method+"-codes.csv", "text/csv; charset=utf-8",
		[]byte("code\r\n"+strings.Join(made, "\r\n")+"\r\n"))
}
