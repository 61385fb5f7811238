package live

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/format"
	"github.com/proofline/proofline/web/console/shell"
)

// recorded is the note of every control that the transcript records.
const recorded = "This is recorded in the public transcript, with the time."

func (h *controls) askPause(_ *shell.Request, r *room.Room) (shell.Question, error) {
	s := r.Snapshot()
	return shell.Question{
		Title: "Pause calls?", Button: "Pause",
		Changes: []shell.Change{
			shell.Changed("Calls", format.PerMinute(s.Outflow.PerMinute), "none until you resume"),
			shell.Shown("Waiting in line", format.People(uncalled(s.Counts))),
		},
		Notes: []string{
			"Visitors who were called (" + format.Number(s.Counts.Waiting) +
				" now) can still enter, and their time to enter runs on.",
			"New visitors can still join the line.", recorded,
		},
	}, nil
}

func (h *controls) pause(x *shell.Request, r *room.Room) error {
	_, err := h.rooms.Pause(x.Request().Context(), x.Actor, r.Slug)
	return err
}

func (h *controls) askFreezeClaims(_ *shell.Request, r *room.Room) (shell.Question, error) {
	s := r.Snapshot()
	calls := format.PerMinute(s.Outflow.PerMinute)
	if s.Paused {
		calls = "none: paused"
	}
	return shell.Question{
		Title: "Freeze claims?", Button: "Freeze claims", IsDanger: true,
		Changes: []shell.Change{
			shell.Changed("Calls", calls, "none until you resume"),
			shell.Changed("Claims of called visitors", "open", "frozen until you resume"),
			shell.Shown("Called, not entered yet", format.People(s.Counts.Waiting)),
		},
		Notes: []string{
			"Use this when the shop itself is in trouble. \"Pause\" is the gentler way: it lets called visitors enter.",
			"The time to enter stands still, so no visitor loses a place. Visitors in the shop stay there.", recorded,
		},
	}, nil
}

func (h *controls) freezeClaims(x *shell.Request, r *room.Room) error {
	_, err := h.rooms.FreezeClaims(x.Request().Context(), x.Actor, r.Slug)
	return err
}

func (h *controls) askResume(_ *shell.Request, r *room.Room) (shell.Question, error) {
	s := r.Snapshot()
	q := shell.Question{
		Title: "Resume?", Button: "Resume",
		Changes: []shell.Change{shell.Changed("Calls", "none", format.PerMinute(s.Outflow.PerMinute))},
		Notes:   []string{recorded},
	}
	if s.ClaimsFrozen {
		q.Changes = append(q.Changes, shell.Changed("Claims of called visitors", "frozen", "open"))
		q.Notes = append([]string{format.People(s.Counts.Waiting) +
			" may enter at once. Check that the shop is ready."},
			q.Notes...)
	}
	return q, nil
}

func (h *controls) resume(x *shell.Request, r *room.Room) error {
	_, err := h.rooms.Resume(x.Request().Context(), x.Actor, r.Slug)
	return err
}

// outflow reads the form of the outflow.
func outflow(x *shell.Request) (room.Amendment, error) {
	members := map[string]uint32{}
	for _, name := range []string{"per_minute", "max_active"} {
		typed := strings.TrimSpace(x.Form(name))
		if typed == "" {
			continue
		}
		value, ok := format.ReadCount(typed)
		if !ok {
			return room.Amendment{}, invalid.Field("outflow."+name, "Enter a whole number, such as 300.")
		}
		members[name] = value
	}
	return amendment(map[string]any{"outflow": members})
}

// amendment parses the amendment with the given members.
func amendment(members map[string]any) (room.Amendment, error) {
	text, err := json.Marshal(members)
	if err != nil {
		return room.Amendment{}, fmt.Errorf("write amendment: %w", err)
	}
	return room.ParseAmendment(text)
}

func (h *controls) askOutflow(x *shell.Request, r *room.Room) (shell.Question, error) {
	a, err := outflow(x)
	if err != nil {
		return shell.Question{}, err
	}
	s := r.Snapshot()
	was, now := s.Outflow, s.Outflow
	if a.Outflow.PerMinute != nil {
		now.PerMinute = *a.Outflow.PerMinute
	}
	if a.Outflow.MaxActive != nil {
		now.MaxActive = *a.Outflow.MaxActive
	}
	if now == was {
		return shell.Question{}, invalid.Field("outflow.per_minute",
			"The pace and the limit are unchanged. Enter another number.")
	}
	q := shell.Question{Title: "Change the outflow?", Button: "Change the outflow"}
	if now.PerMinute != was.PerMinute {
		q.Changes = append(q.Changes, shell.Changed("People per minute", format.Number(was.PerMinute),
			format.Number(now.PerMinute)))
		if n := uncalled(s.Counts); n > 0 {
			q.Changes = append(q.Changes, shell.Changed("To call the "+format.People(n)+" in line",
				atLeast(n, was.PerMinute),
				atLeast(n, now.PerMinute)))
		}
	}
	if now.MaxActive != was.MaxActive {
		q.Changes = append(q.Changes, shell.Changed("In the shop at once", format.Limit(was.MaxActive),
			format.Limit(now.MaxActive)))
	}
	q.Notes = []string{"The waiting times that visitors see change within seconds.", recorded}
	return q, nil
}

// uncalled returns the number of visitors who wait to be called.
func uncalled(n fairness.Counts) uint64 {
	gone := n.Admitted + n.NoShows + n.Left + n.Revoked + n.Waiting
	return n.Arrivals - min(gone, n.Arrivals)
}

// atLeast describes the minimum time for calling a number of visitors.
func atLeast(n uint64, pace uint32) string {
	d := time.Duration(n) * time.Minute / time.Duration(max(pace, 1)) //nolint:gosec // a number of visitors
	return format.Span(d.Seconds()) + " at least"
}

func (h *controls) changeOutflow(x *shell.Request, r *room.Room) error {
	a, err := outflow(x)
	if err != nil {
		return err
	}
	_, err = h.rooms.Amend(x.Request().Context(), x.Actor, r.Slug, a, nil)
	return err
}

// wantTicket explains the ticket field.
const wantTicket = `Enter a ticket, such as cda3f665-387e-8031-a3d9-8534adbd7fa3. Visitors find theirs under "Check my place", in the technical details.`

// ticketIn reads the ticket of a form.
func ticketIn(x *shell.Request) (fairness.Ticket, error) {
	t, err := fairness.ParseTicket(strings.TrimSpace(x.Form("ticket")))
	if err != nil {
		return t, invalid.Field("ticket", wantTicket)
	}
	return t, nil
}

func (h *controls) askRevoke(x *shell.Request, r *room.Room) (shell.Question, error) {
	t, err := ticketIn(x)
	if err != nil {
		return shell.Question{}, err
	}
	st, err := r.Place(x.Request().Context(), t)
	if err != nil {
		return shell.Question{}, err
	}
	reason := x.Form("reason")
	for _, one := range reasonViews {
		if one.Value == reason {
			reason = one.Words
		}
	}
	return shell.Question{
		Title: "Revoke this place?", Button: "Revoke the place", IsDanger: true,
		Changes: []shell.Change{
			shell.Shown("Ticket", t.String()),
			shell.Changed("Place", standingWords(st), "revoked"),
			shell.Shown("Reason, public", reason),
		},
		Notes: []string{"A revoked place can be given back once: look up the ticket.",
			"The ticket and the class of reason are recorded in the public transcript."},
	}, nil
}

func (h *controls) revokeTicket(x *shell.Request, r *room.Room) error {
	t, err := ticketIn(x)
	if err != nil {
		return err
	}
	_, err = h.rooms.Revoke(x.Request().Context(), x.Actor, r.Slug, t, fairness.Reason(x.Form("reason")))
	return err
}

// askEnd requires the room's slug as a confirmation, because ending a room cannot be undone.
func (h *controls) askEnd(x *shell.Request, r *room.Room) (shell.Question, error) {
	if strings.TrimSpace(x.Form("slug")) != r.Slug {
		return shell.Question{}, invalid.Field("slug", "Enter "+r.Slug+" to confirm that you mean this room.")
	}
	found, err := sitesOf(x.Request().Context(), h.sites, x.Actor, r)
	if err != nil {
		return shell.Question{}, err
	}
	n := r.Snapshot().Counts
	q := shell.Question{
		Title: "End the room permanently?", Button: "End the room", IsDanger: true,
		Changes: []shell.Change{shell.Changed("Waiting in line", format.People(uncalled(n)), "sent away")},
		Notes: []string{
			"Visitors in the shop stay there until their time is over.",
			"An ended room cannot be opened again. Its transcript stays public.", recorded,
		},
	}
	if n.Waiting > 0 {
		q.Changes = append(q.Changes, shell.Changed("Called, not entered yet", format.People(n.Waiting),
			"can no longer enter"))
	}
	if len(found.Names) == 0 {
		q.Warnings = []string{shopOf(r) +
			" is not managed here: no site in this console uses the room. After the end, your own connector or shop that " +
			"requires passes refuses everyone without one. Change it there if the sale continues without a line."}
		return q, nil
	}
	names := strings.Join(found.Names, ", ")
	q.Choices = []shell.Option{
		{Name: "shop", Value: "shut", Label: "Shut the shop", Hint: "New visitors of " + names +
			" see that the room has ended and cannot reach the protected pages. You can change this under Sites.",
			IsChosen: true},
		{Name: "shop", Value: "open", Label: "Open the shop", Hint: "Everyone can reach the protected pages of " +
			names +
			" without a line, at any pace."},
	}
	return q, nil
}

// shopOf names the shop of a room, at the beginning of a sentence.
func shopOf(r *room.Room) string {
	for _, target := range r.Config().Targets {
		if u, err := url.Parse(target); err == nil && u.Host != "" {
			return "The shop " + u.Host
		}
	}
	return "The shop"
}

func (h *controls) endRoom(x *shell.Request, r *room.Room) error {
	ctx := x.Request().Context()
	if _, err := h.rooms.End(ctx, x.Actor, r.Slug); err != nil || x.Form("shop") != "open" {
		return err
	}
	return h.sites.SwitchOff(ctx, x.Actor, r.URL)
}
