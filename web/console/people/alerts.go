package people

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/web/console/shell"
)

// alerts serves the page that configures alerts.
type alerts struct {
	alerts    *webhook.Alerts
	endpoints *webhook.Endpoints
}

func (h *alerts) routes() []shell.Route {
	return []shell.Route{
		shell.Get("/alerts", account.Operate, h.showAlerts),
		shell.Post("/alerts", account.Operate, h.saveAlerts),
		shell.Post("/alerts/test", account.Operate, h.testAlerts),
	}
}

// alertWords describe when an alert is sent.
var alertWords = map[webhook.AlertKind]string{
	webhook.AlertForkSeen:         "a server or a witness has seen a different history of a room or of the log of rooms, which is held",
	webhook.AlertBeaconLate:       "a draw has waited for its round for 30 seconds",
	webhook.AlertDatabase:         "the database has not answered for 30 seconds",
	webhook.AlertIssuerAway:       "an issuer that visitors of an open or coming room need does not answer",
	webhook.AlertPaused:           "calls are paused, or claims frozen",
	webhook.AlertEnded:            "the room has ended",
	webhook.AlertOutflowBehind:    "the outflow has been below its target for two minutes",
	webhook.AlertNoShows:          "the share of called visitors who do not show up exceeds the percentage below",
	webhook.AlertLineFull:         "the line has reached its maximum length",
	webhook.AlertTokenEnds:        "a token in use expires in two weeks, in three days, or has expired",
	webhook.AlertEndpointDisabled: "a webhook was disabled",
}

// alertsPage is the data of the page of alerts.
type alertsPage struct {
	HasMail   bool
	Emails    string // addresses, one per line
	Kinds     []alertChoice
	Endpoints []endpointChoice
	NoShows   int
	HasAny    bool // there is a recipient
}

type alertChoice struct {
	choice
	Title string
}

type endpointChoice struct {
	webhook.Endpoint
	Chosen bool
}

func (h *alerts) alertsPage(ctx context.Context, x *shell.Request, s webhook.AlertSettings) (alertsPage, error) {
	p := alertsPage{HasMail: h.alerts.HasMail(), Emails: strings.Join(s.Emails, "\n"), NoShows: s.NoShowPercent}
	for _, k := range webhook.AlertKinds() {
		p.Kinds = append(p.Kinds, alertChoice{choice{string(k), alertWords[k], slices.Contains(s.Kinds, k)}, k.Title()})
	}
	list, err := h.endpoints.List(ctx, x.Actor)
	for _, e := range list {
		p.Endpoints = append(p.Endpoints, endpointChoice{e, slices.Contains(s.Endpoints, e.ID)})
	}
	p.HasAny = len(s.Emails)+len(s.Endpoints) > 0
	return p, err
}

func (h *alerts) showAlerts(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	s, err := h.alerts.Settings(ctx, x.Actor)
	if err != nil {
		return err
	}
	page, err := h.alertsPage(ctx, x, s)
	if err != nil {
		return err
	}
	return x.Page("alerts", page)
}

// form reads the form.
func (h *alerts) form(x *shell.Request) (s webhook.AlertSettings, problems invalid.List) {
	for line := range strings.Lines(strings.ReplaceAll(x.Form("emails"), ",", "\n")) {
		if line = strings.TrimSpace(line); line != "" {
			s.Emails = append(s.Emails, line)
		}
	}
	for _, text := range x.Request().PostForm["endpoint"] {
		id, err := uuid.Parse(text)
		if err != nil {
			problems = append(problems, invalid.Problem{Field: "endpoints", Detail: "must be webhooks from the list"})
			continue
		}
		s.Endpoints = append(s.Endpoints, id)
	}
	for _, name := range x.Request().PostForm["kind"] {
		s.Kinds = append(s.Kinds, webhook.AlertKind(name))
	}
	var err error
	if s.NoShowPercent, err = strconv.Atoi(x.Form("no_show_percent")); err != nil || s.NoShowPercent == 0 {
		problems = append(problems, invalid.Problem{Field: "no_show_percent",
			Detail: "must be a whole number from 1 to 100"})
	}
	return s, problems
}

func (h *alerts) saveAlerts(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	s, problems := h.form(x)
	err := error(nil)
	if len(problems) > 0 {
		err = &invalid.Error{Problems: problems}
	} else {
		err = h.alerts.SetSettings(ctx, x.Actor, s)
	}
	if err == nil {
		return x.Done("/alerts", "alerts-saved")
	}
	page, wrong := h.alertsPage(ctx, x, s)
	if wrong != nil {
		return wrong
	}
	return x.Invalid("alerts", page, err)
}

func (h *alerts) testAlerts(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	switch err := h.alerts.Test(ctx, x.Actor); {
	case errors.Is(err, account.ErrNotFound):
		return x.Done("/alerts", "alerts-nobody")
	case err != nil:
		return err
	}
	return x.Done("/alerts", "alerts-tested")
}
