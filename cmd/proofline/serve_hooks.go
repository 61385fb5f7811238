package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/pflag"

	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/console/hook"
)

// hookFlags say where webhooks may lead, and how mail is sent.
type hookFlags struct {
	networks []string
	smtp     string
}

func (f *hookFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.networks, "webhook-networks", nil, "`NETWORKS` that webhooks may lead to beside public addresses, such as 10.0.0.0/8; only there without TLS")
	flags.StringVar(&f.smtp, "smtp", "", "mail server, smtp(s)://USER:PASSWORD@HOST:PORT?from=ADDRESS, or a `FILE` that says so; with it alerts and invitations are mailed")
	inEnv(flags, "webhook-networks", "smtp")
}

// check reads the flags into the configuration.
func (f *hookFlags) check(c *server.Config) error {
	for _, text := range f.networks {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return usage(fmt.Errorf("--webhook-networks: %q is no network", text), "give networks such as 10.0.0.0/8")
		}
		c.WebhookNetworks = append(c.WebhookNetworks, prefix.Masked())
	}
	if f.smtp == "" {
		return nil
	}
	text := f.smtp
	if !strings.HasPrefix(text, "smtp://") && !strings.HasPrefix(text, "smtps://") {
		var err error
		if text, err = secret.Read(f.smtp); err != nil {
			return usage(errors.New("--smtp: neither a URL of smtp nor the name of a file that can be read"), "give such as smtps://user:password@mail.example.com?from=alerts@example.com")
		}
	}
	mail, err := hook.ParseSMTP(strings.TrimSpace(text))
	if err != nil {
		return usage(fmt.Errorf("--smtp: %w", err), "check the URL; its password is not repeated here")
	}
	c.Mail = mail
	return nil
}
