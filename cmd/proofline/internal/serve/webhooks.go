package serve

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/pflag"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/room/setting"
)

// webhookFlags are the flags for webhooks and mail.
type webhookFlags struct {
	networks []string
	smtp     string
}

func (f *webhookFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.networks, "webhook-networks", nil,
		"`NETWORKS` that webhooks and checks of issuers may reach besides public addresses, such as 10.0.0.0/8; "+
			"only these also without TLS")
	flags.StringVar(&f.smtp, "smtp", "",
		"mail server for alerts, invitations and the codes of methods with the key "+setting.OwnMailKey+
			", smtp(s)://USER:PASSWORD@HOST:PORT?from=ADDRESS, or a `FILE` with that URL")
	cli.InEnv(flags, "webhook-networks", "smtp")
}

// check parses the flags into the configuration.
func (f *webhookFlags) check(c *server.Config) error {
	for _, text := range f.networks {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return cli.Usage(fmt.Errorf("--webhook-networks: %q is not a network", text),
				"give networks such as 10.0.0.0/8")
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
			return cli.Usage(errors.New("--smtp: neither an smtp URL nor the name of a readable file"),
				"give a URL such as smtps://user:password@mail.example.com?from=alerts@example.com")
		}
	}
	mail, err := webhook.ParseSMTP(strings.TrimSpace(text))
	if err != nil {
		return cli.Usage(fmt.Errorf("--smtp: %w", err), "check the URL")
	}
	c.Mail = mail
	return nil
}
