package rooms

import (
	"context"
	"strings"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/queueit"
	"github.com/proofline/proofline/web/console/shell"
)

// queueIt serves the page that sets up tokens for Queue-it connectors.
type queueIt struct{ control *control.Rooms }

func (h *queueIt) routes() []shell.Route {
	return []shell.Route{
		shell.Get("/rooms/:slug/queue-it", account.Operate, shell.OfRoom(h.control, h.showQueueIt)),
		shell.Post("/rooms/:slug/queue-it", account.Operate, shell.OfRoom(h.control, h.saveQueueIt)),
		shell.Post("/rooms/:slug/queue-it/clear", account.Operate, shell.OfRoom(h.control, h.clearQueueIt)),
	}
}

// queueItPage is the data of the page. It never contains the secret key.
type queueItPage struct {
	Slug, Name string
	Host       string // host of the room's URL
	IsSet      bool
	Form       queueit.Config
}

// MinKey returns the minimum length of the secret key.
func (queueItPage) MinKey() int { return queueit.MinKey }

// MaxKey returns the maximum length of the secret key.
func (queueItPage) MaxKey() int { return queueit.MaxKey }

func newQueueItPage(r *room.Room) queueItPage {
	form, ok := r.QueueIt.Config()
	_, address, _ := strings.Cut(r.URL, "://")
	host, _, _ := strings.Cut(address, "/")
	return queueItPage{Slug: r.Slug, Name: r.Snapshot().Title, Host: host, IsSet: ok, Form: form}
}

func (h *queueIt) showQueueIt(_ context.Context, x *shell.Request, r *room.Room) error {
	return x.Page("room-queue-it", newQueueItPage(r))
}

func (h *queueIt) saveQueueIt(ctx context.Context, x *shell.Request, r *room.Room) error {
	page := newQueueItPage(r)
	page.Form = queueit.Config{CustomerID: x.FormWord("customer_id"), Extend: x.Form("extend") == "1",
		WithPass: x.Form("with_pass") == "1"}
	if _, err := h.control.SetQueueIt(ctx, x.Actor, r.Slug, page.Form, x.FormWord("secret_key")); err != nil {
		return x.Invalid("room-queue-it", page, err)
	}
	return x.Done("/rooms/"+r.Slug+"/queue-it", "queue-it-saved")
}

func (h *queueIt) clearQueueIt(ctx context.Context, x *shell.Request, r *room.Room) error {
	if !x.IsConfirmed() {
		return x.Confirm(shell.Ask("Stop serving Queue-it connectors?", "Stop",
			"Visitors reach the shop with a Proofline pass only, and the secret key is deleted.").Dangerous(),
			"/rooms/"+r.Slug+"/queue-it")
	}
	if err := h.control.ClearQueueIt(ctx, x.Actor, r.Slug); err != nil {
		return err
	}
	return x.Done("/rooms/"+r.Slug+"/queue-it", "queue-it-cleared")
}
