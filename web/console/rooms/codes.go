package rooms

import (
	"context"
	"errors"
	"html/template"
	"strconv"
	"strings"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/internal/codesheet"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/listfile"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/format"
	"github.com/proofline/proofline/web/console/shell"
)

// codes serves the pages on which organizers make codes that confirm visitors, and void them.
type codes struct{ control *control.Rooms }

func (h *codes) routes() []shell.Route {
	return []shell.Route{
		shell.Get("/rooms/:slug/codes", account.Operate, shell.OfRoom(h.control, h.show)),
		shell.Post("/rooms/:slug/codes", account.Operate, shell.OfRoom(h.control, h.make)),
		shell.Post("/rooms/:slug/codes/void", account.Operate, shell.OfRoom(h.control, h.void)),
	}
}

// codesPage is the data of the page.
type codesPage struct {
	Slug, Name string
	Methods    []string // for which the server's own issuer vouches
	Method     string
	Count      string
	Made       int           // number of new codes
	Slips      template.HTML // new codes, to print
	Of         []methodCodes
	Typed      string // codes to void

	Void  *control.VoidedCodes // after the check
	Batch int                  // to void; 0: the codes of Typed
	Done  bool
}

// methodCodes is what there is of codes for a method.
type methodCodes struct {
	Method  string
	Batches []control.CodeBatch
	Sum     control.CodeBatch
}

// InWords returns a number of codes in words.
func (codesPage) InWords(n int) string {
	if n == 1 {
		return "1 code"
	}
	return format.Number(n) + " codes"
}

// Total returns how many codes a batch has.
func (codesPage) Total(b control.CodeBatch) int { return b.Unused + b.Used + b.Void }

// usualCount is proposed for methods whose room takes any number of credentials.
const usualCount = 500

// Most returns the maximum number of codes made at once.
func (codesPage) Most() string { return format.Number(control.MaxCodes) }

func (h *codes) page(r *room.Room) codesPage {
	p := codesPage{Slug: r.Slug, Name: r.Snapshot().Title, Methods: h.control.OwnMethods(r)}
	count := usualCount
	for _, m := range r.Policy().Methods {
		if len(p.Methods) > 0 && m.Name == p.Methods[0] && m.Limit > 0 {
			count = int(min(m.Limit, control.MaxCodes))
		}
	}
	p.Count = strconv.Itoa(count)
	return p
}

// listed adds the codes that there are. Methods with members have none.
func (h *codes) listed(ctx context.Context, x *shell.Request, p codesPage) (codesPage, error) {
	for _, method := range p.Methods {
		batches, err := h.control.Codes(ctx, x.Actor, p.Slug, method)
		if errors.Is(err, control.ErrMembers) || err == nil && len(batches) == 0 {
			continue
		}
		if err != nil {
			return p, err
		}
		of := methodCodes{Method: method, Batches: batches}
		for _, b := range batches {
			of.Sum.Unused, of.Sum.Used, of.Sum.Void = of.Sum.Unused+b.Unused, of.Sum.Used+b.Used, of.Sum.Void+b.Void
		}
		p.Of = append(p.Of, of)
	}
	return p, nil
}

func (h *codes) show(ctx context.Context, x *shell.Request, r *room.Room) error {
	page, err := h.listed(ctx, x, h.page(r))
	if err != nil {
		return err
	}
	return x.Page("room-codes", page)
}

// refuse shows the page again with the problems of a form.
func (h *codes) refuse(ctx context.Context, x *shell.Request, page codesPage, problem error) error {
	page, err := h.listed(ctx, x, page)
	if err != nil {
		return err
	}
	return x.Invalid("room-codes", page, problem)
}

// print adds the slips of new codes.
func (p *codesPage) print(r *room.Room, codes []string) (err error) {
	settings, _ := r.Settings()
	sheet := codesheet.Sheet{Title: p.Name, Address: r.URL, Codes: codes,
		Opens: codesheet.Opens(r.Snapshot().Opens, r.Now(), settings.Zone())}
	p.Made = len(codes)
	p.Slips, err = sheet.Slips()
	return err
}

// maxCodesUpload is the maximum size of a form with codes to void, in bytes.
const maxCodesUpload = 8 << 20

// void shows what voiding codes would do, and does it once that is confirmed.
func (h *codes) void(ctx context.Context, x *shell.Request, r *room.Room) error {
	if err := x.ReadUpload(maxCodesUpload); err != nil {
		return err
	}
	if x.IsElsewhere() {
		return shell.ErrSwitched
	}
	page := h.page(r)
	page.Method = x.FormWord("method")
	page.Batch, _ = strconv.Atoi(x.FormWord("batch"))
	which := control.CodesToVoid{Batch: page.Batch}
	var err error
	if which.Batch == 0 {
		if page.Typed, err = uploaded(x); err != nil {
			return err
		}
		which.Codes, err = listfile.Read(page.Typed, "code", control.MaxCodes, func(cell string) (string, error) {
			return cell, nil // what is no code is counted
		})
		if err != nil {
			return h.refuse(ctx, x, page, invalid.Field("text", strings.Join(details(err), "; ")))
		}
	}
	found, err := h.control.VoidCodes(ctx, x.Actor, r.Slug, page.Method, which, !x.IsConfirmed())
	if err != nil {
		return h.refuse(ctx, x, page, err)
	}
	page.Void, page.Done = &found, x.IsConfirmed()
	return x.Page("room-codes-void", page)
}

// details returns what an error says of a file.
func details(err error) (list []string) {
	for _, problem := range invalid.Problems(err) {
		list = append(list, problem.Detail)
	}
	return list
}

// make answers with a page or a file of new codes, which is their only copy.
func (h *codes) make(ctx context.Context, x *shell.Request, r *room.Room) error {
	page, method := h.page(r), x.FormWord("method")
	page.Method, page.Count = method, x.FormWord("count")
	count, err := strconv.Atoi(page.Count)
	if err != nil {
		return h.refuse(ctx, x, page, invalid.Field("count", "must be a whole number"))
	}
	made, _, err := h.control.MakeCodes(ctx, x.Actor, r.Slug, method, count)
	if err != nil {
		return h.refuse(ctx, x, page, err)
	}
	if x.Form("do") == "sheet" {
		if err := page.print(r, made); err != nil {
			return err
		}
		return x.Page("room-codes-sheet", page)
	}
	return x.Download(r.Slug+"-"+method+"-codes.csv", "text/csv; charset=utf-8",
		[]byte("code\r\n"+strings.Join(made, "\r\n")+"\r\n"))
}
