package console

import (
	"context"
	"strings"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/room"
)

// queueItRoutes are the page on which a room is told to speak to connectors of
// queue-it.
func (c *Console) queueItRoutes() []route {
	return []route{
		{GET, "/rooms/:slug/queue-it", account.Operate, c.ofRoom(c.showQueueIt)},
		{POST, "/rooms/:slug/queue-it", account.Operate, c.ofRoom(c.saveQueueIt)},
		{POST, "/rooms/:slug/queue-it/clear", account.Operate, c.ofRoom(c.clearQueueIt)},
	}
}

// queueItPage is what the page shows. The secret key is never on it.
type queueItPage struct {
	Slug, Name string
	Host       string // of the room's address
	IsSet      bool
	Form       room.QueueIt
}

// MinKey and MaxKey bound the length of the secret key.
func (queueItPage) MinKey() int { return room.MinQueueItKey }

// MaxKey is the most.
func (queueItPage) MaxKey() int { return room.MaxQueueItKey }

func newQueueItPage(r *room.Room) queueItPage {
	form, ok := r.QueueIt()
	_, address, _ := strings.Cut(r.URL, "://")
	host, _, _ := strings.Cut(address, "/")
	return queueItPage{Slug: r.Slug, Name: r.Snapshot().Title, Host: host, IsSet: ok, Form: form}
}

func (c *Console) showQueueIt(_ context.Context, x *request, r *room.Room) error {
	return x.page("room-queue-it", newQueueItPage(r))
}

func (c *Console) saveQueueIt(ctx context.Context, x *request, r *room.Room) error {
	page := newQueueItPage(r)
	page.Form = room.QueueIt{CustomerID: x.word("customer_id"), Extend: x.form("extend") == "1", WithPass: x.form("with_pass") == "1"}
	if _, err := c.Control.SetQueueIt(ctx, x.Actor, r.Slug, page.Form, x.word("secret_key")); err != nil {
		return x.invalid("room-queue-it", page, err)
	}
	return x.done("/rooms/"+r.Slug+"/queue-it", "queue-it-saved")
}

func (c *Console) clearQueueIt(ctx context.Context, x *request, r *room.Room) error {
	if !x.isConfirmed() {
		return x.confirm(plainQuestion("Stop serving queue-it connectors?", "Stop", "Visitors reach the shop with a Proofline pass only, and the secret key is deleted.").Dangerous(), "/rooms/"+r.Slug+"/queue-it")
	}
	if err := c.Control.ClearQueueIt(ctx, x.Actor, r.Slug); err != nil {
		return err
	}
	return x.done("/rooms/"+r.Slug+"/queue-it", "queue-it-cleared")
}
