package server

import (
	"context"
	"errors"

	"github.com/proofline/proofline/console/issuers"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/outbound"
	"github.com/proofline/proofline/room/setting"
)

// watchIssuers asks the issuers that rooms need whether they answer, until the server stops.
func (s *Server) watchIssuers(context.Context) error {
	s.issuers = issuers.New(issuers.Options{Rooms: s.rooms, Own: s.issuer.service,
		Guard: outbound.Guard{Allowed: s.cfg.WebhookNetworks}, Log: s.cfg.Log})
	s.inBackground(s.issuers.Run)
	return nil
}

// service returns what the own issuer needs to confirm visitors for a method of a room; nil: this server alone. Rooms
// have no such methods if there is no own issuer.
func (o *ownIssuer) service(slug string, m credential.Method) *issuers.Service {
	own, cfg := o.OwnKey(slug, m), &o.server.cfg
	if lacks := o.Lacks(own); lacks != "" { // it was there when the room was made
		return &issuers.Service{Name: "This server's issuer",
			Ask: func(context.Context) error { return errors.New(lacks) }}
	}
	switch own {
	case setting.OwnMailKey:
		return &issuers.Service{Name: "The mail server", Ask: cfg.Mail.Ask}
	case setting.OwnOIDCKey:
		return &issuers.Service{Name: "The sign-in provider " + cfg.IssuerOIDC.Name, Ask: cfg.IssuerOIDC.Ask}
	case setting.OwnCaptchaKey:
		return &issuers.Service{Name: cfg.Captcha.Title, Ask: cfg.Captcha.Ask}
	}
	return nil
}
