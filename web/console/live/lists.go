package live

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/listfile"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/revocation"
	"github.com/proofline/proofline/web/console/format"
	"github.com/proofline/proofline/web/console/shell"
)

// Limits of a list in the console. Longer ones are for the command and the API.
const (
	maxListed     = 100_000  // lines
	maxListUpload = 12 << 20 // bytes
)

// lists serves the pages that revoke and restore many tickets. The list travels in the forms: a first one is checked,
// and the next ones revoke [revocation.Most] tickets each, so that no request takes long and nothing has to be
// remembered.
type lists struct{ control *control.Rooms }

func (h *lists) routes() (list []shell.Route) {
	for _, name := range []string{revokeList, restoreList} {
		list = append(list,
			shell.Get("/rooms/:slug/"+name, account.Operate, shell.OfRoom(h.control, h.show(name))),
			shell.Post("/rooms/:slug/"+name, account.Operate, shell.OfRoom(h.control, h.act(name))),
		)
	}
	return list
}

// Names of the pages.
const (
	revokeList  = "revoke-list"
	restoreList = "restore-list"
)

// Ways to name tickets.
const (
	byTickets    = "tickets"
	byNullifiers = "nullifiers"
	byMethod     = "method"
)

// listPage is the data of the pages.
type listPage struct {
	Slug, Title string
	Name        string // of the page
	Ended       bool
	Methods     []string
	Reasons     []reasonView

	By, Method, Reason, Typed string
	SkipUnknown               bool
	Since                     uint64 // restore only what this entry of the transcript or a later one revoked

	Tally *revocation.Tally // after the check
	Total int               // tickets or nullifiers of the list; 0 for all tickets of a method

	Packed string // those that are not done yet
	From   uint32 // for all tickets of a method, where to go on
	Sent   int    // those that are done
	Done   int    // places revoked or given back
	Called int    // of these, visitors called at once
	Later  int    // those that cannot be called at once now
	Again  string // the parts of the list with such places, packed
	Waits  int    // those of the round before: places that the page tries again to give back
	Tries  int    // rounds before
	First  uint64 // index of the first entry
	IsOver bool
}

// IsRestore reports whether the page gives places back.
func (p listPage) IsRestore() bool { return p.Name == restoreList }

// Most returns the maximum length of a list.
func (listPage) Most() string { return format.Number(maxListed) }

// Affected returns how many places an answer of yes changes.
func (p listPage) Affected() int {
	if p.IsRestore() {
		return p.Tally.Revoked
	}
	return p.Tally.Pending()
}

// Places returns a number of places in words.
func (listPage) Places(n int) string {
	if n == 1 {
		return "1 place"
	}
	return format.Number(n) + " places"
}

// ReasonWords describes the reason.
func (p listPage) ReasonWords() string {
	for _, one := range reasonViews {
		if one.Value == p.Reason {
			return one.Words
		}
	}
	return p.Reason
}

func newListPage(r *room.Room, name string) listPage {
	p := listPage{Slug: r.Slug, Title: r.Snapshot().Title, Name: name, Ended: r.Snapshot().Ended, Reasons: reasonViews,
		By: byTickets, Reason: string(fairness.RevokedBot)}
	for _, m := range r.Policy().Methods {
		p.Methods = append(p.Methods, m.Name)
	}
	return p
}

func (h *lists) show(name string) func(context.Context, *shell.Request, *room.Room) error {
	return func(_ context.Context, x *shell.Request, r *room.Room) error {
		p := newListPage(r, name)
		p.Since, _ = strconv.ParseUint(x.QueryParam("since"), 10, 64) // a link of this page
		return x.Page("room-list", p)
	}
}

func (h *lists) act(name string) func(context.Context, *shell.Request, *room.Room) error {
	return func(ctx context.Context, x *shell.Request, r *room.Room) error {
		if err := x.ReadUpload(maxListUpload); err != nil {
			return err
		}
		if x.IsElsewhere() {
			return shell.ErrSwitched
		}
		p := newListPage(r, name)
		if err := p.read(x); err != nil {
			return x.Invalid("room-list", p, err)
		}
		var err error
		if x.IsConfirmed() {
			err = h.do(ctx, x, &p)
		} else {
			err = h.check(ctx, x, &p)
		}
		if err != nil {
			return x.Invalid("room-list", p, listWords(err))
		}
		return x.Page("room-list", p)
	}
}

// read reads the fields of the form, without the list.
func (p *listPage) read(x *shell.Request) error {
	p.By, p.Method, p.Reason = x.FormWord("by"), x.FormWord("method"), x.FormWord("reason")
	p.SkipUnknown, p.Typed = x.Form("skip_unknown") != "", x.FormText("list")
	var problems invalid.List
	problems.Check(p.By == byTickets || p.By == byNullifiers || p.By == byMethod, "by", "Choose one.")
	problems.Check(p.IsRestore() || fairness.Reason(p.Reason).IsRevoked(), "reason", "Choose a reason.")
	for name, into := range map[string]*uint64{"since": &p.Since, "first": &p.First} {
		if typed := x.FormWord(name); typed != "" {
			n, ok := format.ReadCount(typed)
			problems.Check(ok, name, "Enter the number of an entry, such as 51203.")
			*into = uint64(n)
		}
	}
	for name, into := range map[string]*int{"total": &p.Total, "sent": &p.Sent, "done": &p.Done, "called": &p.Called,
		"later": &p.Later, "waits": &p.Waits, "tries": &p.Tries} {
		*into, _ = strconv.Atoi(x.Form(name)) // what this page has written; only shown
	}
	p.Again = x.Form("again")
	from, _ := strconv.ParseUint(x.Form("from"), 10, 32)
	p.From = uint32(from)
	return problems.Err()
}

// selections reads the list, in parts that one request may have.
func (p *listPage) selections(x *shell.Request) (list []revocation.Selection, err error) {
	part := revocation.Selection{SkipUnknown: p.SkipUnknown, From: p.From}
	if p.By != byTickets {
		part.Method = p.Method
	}
	switch p.By {
	case byMethod:
		return []revocation.Selection{part}, nil
	case byNullifiers:
		all, err := listed(x, "nullifier", revocation.ParseNullifier)
		for p.Total = len(all); len(all) > 0; all = all[min(revocation.Most, len(all)):] {
			part.Nullifiers = all[:min(revocation.Most, len(all))]
			list = append(list, part)
		}
		return list, err
	}
	all, err := listed(x, "ticket", fairness.ParseTicket)
	for p.Total = len(all); len(all) > 0; all = all[min(revocation.Most, len(all)):] {
		part.Tickets = all[:min(revocation.Most, len(all))]
		list = append(list, part)
	}
	return list, err
}

// listed reads the list of a form: of the file, or else of the text.
func listed[T any](x *shell.Request, name string, parse func(string) (T, error)) ([]T, error) {
	text := x.FormText("list")
	if x.Request().MultipartForm != nil {
		for _, header := range x.Request().MultipartForm.File["file"] {
			if header.Size == 0 {
				continue // no file was chosen
			}
			file, err := header.Open()
			if err != nil {
				return nil, fmt.Errorf("read list: %w", err)
			}
			content, err := io.ReadAll(file)
			if err = errors.Join(err, file.Close()); err != nil {
				return nil, fmt.Errorf("read list: %w", err)
			}
			text = string(content)
		}
	}
	if strings.TrimSpace(text) == "" {
		return nil, invalid.Field("list", fmt.Sprintf("Enter %ss, one a line, or choose a file.", name))
	}
	list, err := listfile.Read(text, name, maxListed, parse)
	for i, p := range invalid.Problems(err) { // which names lines, not fields
		invalid.Problems(err)[i] = invalid.Problem{Field: "list", Detail: format.Sentence(invalid.Field(p.Field, p.Detail))}
	}
	return list, err
}

// check counts the tickets of the list.
func (h *lists) check(ctx context.Context, x *shell.Request, p *listPage) error {
	parts, err := p.selections(x)
	if err != nil {
		return err
	}
	var sum revocation.Tally
	for i := 0; i < len(parts); i++ {
		t, err := h.control.Lists.Check(ctx, x.Actor, p.Slug, parts[i], p.Since)
		if err != nil {
			return err
		}
		if sum.Add(t); t.Next > 0 {
			next := parts[i]
			next.From = t.Next
			parts = append(parts, next)
		}
		p.Packed += pack(parts[i])
	}
	p.Tally = &sum
	return nil
}

// do revokes or restores the first part of what is left.
func (h *lists) do(ctx context.Context, x *shell.Request, p *listPage) (err error) {
	part := revocation.Selection{SkipUnknown: p.SkipUnknown, From: p.From}
	if p.By != byTickets {
		part.Method = p.Method
	}
	p.Packed = x.Form("packed")
	rest, sent := "", 0
	switch p.By {
	case byTickets:
		part.Tickets, rest, err = unpack[fairness.Ticket](p.Packed)
		sent = len(part.Tickets)
	case byNullifiers:
		part.Nullifiers, rest, err = unpack[revocation.Nullifier](p.Packed)
		sent = len(part.Nullifiers)
	}
	if err != nil {
		p.Packed = ""
		return err
	}
	var tally revocation.Tally
	if p.IsRestore() {
		done, err := h.control.Lists.Restore(ctx, x.Actor, p.Slug, part, p.Since)
		if err != nil {
			return err
		}
		tally = done.Tally
		if p.Done, p.Called, p.Later = p.Done+done.Length, p.Called+done.Called, p.Later+done.Later; done.Later > 0 {
			p.Again += pack(part)
		}
	} else {
		done, err := h.control.Lists.Revoke(ctx, x.Actor, p.Slug, part, fairness.Reason(p.Reason))
		if err != nil {
			return err
		}
		tally = done.Tally
		if p.Done += done.Length; p.First == 0 && done.Length > 0 {
			p.First = done.First
		}
	}
	p.Sent, p.Packed, p.From = p.Sent+sent, rest, tally.Next
	if p.IsOver = rest == "" && tally.Next == 0; p.IsOver && p.Later > 0 {
		p.repeat()
	}
	return nil
}

// repeat begins another round, with those parts of the list that have places for which the line has no room now.
func (p *listPage) repeat() {
	p.IsOver, p.Waits, p.Later, p.Tries = false, p.Later, 0, p.Tries+1
	p.Packed, p.Again, p.Sent, p.Total = p.Again, "", 0, 0
}

// longestDelay is how long the page waits between two rounds at most, in seconds.
const longestDelay = 60

// Delay returns how long the page waits before the next round, in seconds: longer each time, because each round is in
// the activity log.
func (p listPage) Delay() int { return min(longestDelay, 5<<min(p.Tries-1, 4)) }

// Begins reports whether the next form begins a round.
func (p listPage) Begins() bool { return p.Waits > 0 && p.Sent == 0 && p.From == 0 }

// listWords describes why a list is refused.
func listWords(err error) error {
	switch {
	case errors.Is(err, room.ErrDrawing):
		return invalid.Field("", "Some of these places are being drawn at this moment, so nothing was done. "+
			"Try again after the draw.")
	case errors.Is(err, room.ErrEnded):
		return invalid.Field("", "The room has ended: its places can no longer be revoked or given back.")
	}
	return err
}

// pack writes a list for a form.
func pack(s revocation.Selection) string {
	var b []byte
	for _, t := range s.Tickets {
		b = append(b, t[:]...)
	}
	for _, n := range s.Nullifiers {
		b = append(b, n[:]...)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

var errPacked = invalid.Field("", "The list is damaged. Upload it again.")

// unpack reads the first part of a packed list, and returns the rest of it.
func unpack[T ~[16]byte | ~[32]byte](text string) (list []T, rest string, err error) {
	var one T
	length := base64.RawURLEncoding.EncodedLen(len(one) * revocation.Most)
	rest = text[min(length, len(text)):]
	b, err := base64.RawURLEncoding.DecodeString(text[:len(text)-len(rest)])
	if err != nil || len(b)%len(one) != 0 || len(b) == 0 {
		return nil, "", errPacked
	}
	for ; len(b) > 0; b = b[len(one):] {
		list = append(list, T(b[:len(one)]))
	}
	return list, rest, nil
}
