package console

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
)

// alertRoutes are those of who is told when something needs a person.
func (c *Console) alertRoutes() []route {
	if c.Webhooks == nil {
		return nil
	}
	return []route{
		{GET, "/alerts", account.Operate, c.showAlerts},
		{POST, "/alerts", account.Operate, c.saveAlerts},
		{POST, "/alerts/test", account.Operate, c.testAlerts},
	}
}

// alertWords say when an alert comes.
var alertWords = map[webhook.AlertKind]string{
	webhook.AlertForkSeen:         "a server or a witness has seen another history of the room, which is held",
	webhook.AlertBeaconLate:       "a draw has waited for its round for 30 seconds",
	webhook.AlertDatabase:         "the database has not answered for 30 seconds",
	webhook.AlertPaused:           "the room is paused, or its claims are frozen",
	webhook.AlertEnded:            "a room is over",
	webhook.AlertOutflowBehind:    "the outflow is behind what is planned for two minutes",
	webhook.AlertNoShows:          "more of the people called do not come than the share below",
	webhook.AlertLineFull:         "as many people are in line as the room lets in",
	webhook.AlertTokenEnds:        "a token in use ends in two weeks, in three days, or has ended",
	webhook.AlertEndpointDisabled: "nothing is sent to a webhook any more",
}

// alertsPage is what the page of alerts shows.
type alertsPage struct {
	HasMail   bool
	Emails    string // one a line
	Kinds     []alertChoice
	Endpoints []endpointChoice
	NoShows   int
	IsTold    bool // somebody is
}

type alertChoice struct {
	choice
	Title string
}

type endpointChoice struct {
	webhook.Endpoint
	Chosen bool
}

func (x *request) alertsPage(ctx context.Context, s webhook.AlertSettings) (alertsPage, error) {
	p := alertsPage{HasMail: x.console.Webhooks.Mail != nil, Emails: strings.Join(s.Emails, "\n"), NoShows: s.NoShowPercent}
	for _, k := range webhook.AlertKinds() {
		p.Kinds = append(p.Kinds, alertChoice{choice{string(k), alertWords[k], slices.Contains(s.Kinds, k)}, k.Title()})
	}
	list, err := x.console.Webhooks.Endpoints(ctx, x.Actor)
	for _, e := range list {
		p.Endpoints = append(p.Endpoints, endpointChoice{e, slices.Contains(s.Endpoints, e.ID)})
	}
	p.IsTold = len(s.Emails)+len(s.Endpoints) > 0
	return p, err
}

func (c *Console) showAlerts(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	s, err := c.Webhooks.Alerts(ctx, x.Actor)
	if err != nil {
		return err
	}
	page, err := x.alertsPage(ctx, s)
	if err != nil {
		return err
	}
	return x.page("alerts", page)
}

// alerts reads the form.
func (x *request) alerts() (s webhook.AlertSettings, problems invalid.List) {
	for line := range strings.Lines(strings.ReplaceAll(x.form("emails"), ",", "\n")) {
		if line = strings.TrimSpace(line); line != "" {
			s.Emails = append(s.Emails, line)
		}
	}
	for _, text := range x.Request().PostForm["endpoint"] {
		id, err := uuid.Parse(text)
		if err != nil {
			problems.Add("endpoints", "must be webhooks of the list")
			continue
		}
		s.Endpoints = append(s.Endpoints, id)
	}
	for _, name := range x.Request().PostForm["kind"] {
		s.Kinds = append(s.Kinds, webhook.AlertKind(name))
	}
	var err error
	if s.NoShowPercent, err = strconv.Atoi(x.form("no_show_percent")); err != nil || s.NoShowPercent == 0 {
		problems.Add("no_show_percent", "must be a whole number from 1 to 100")
	}
	return s, problems
}

func (c *Console) saveAlerts(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	s, problems := x.alerts()
	err := error(nil)
	if len(problems) > 0 {
		err = problems.Err()
	} else {
		err = c.Webhooks.SetAlerts(ctx, x.Actor, s)
	}
	if err == nil {
		return x.done("/alerts", "alerts-saved")
	}
	page, wrong := x.alertsPage(ctx, s)
	if wrong != nil {
		return wrong
	}
	return x.invalid("alerts", page, err)
}

func (c *Console) testAlerts(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	switch err := c.Webhooks.TestAlert(ctx, x.Actor); {
	case errors.Is(err, account.ErrNotFound):
		return x.done("/alerts", "alerts-nobody")
	case err != nil:
		return err
	}
	return x.done("/alerts", "alerts-tested")
}
