package serve

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/proofline/proofline/cmd/proofline/internal/captcha"
	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/room/setting"
	web "github.com/proofline/proofline/web/issuer"
)

// captchaFlags are the flags for a CAPTCHA service of the own issuer.
type captchaFlags struct{ service, siteKey, secretFile, verify string }

func (f *captchaFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.service, "captcha", "",
		"`SERVICE` whose check confirms visitors for methods with the key "+setting.OwnCaptchaKey+": "+
			strings.Join(web.CaptchaNames(), ", ")+" (default off)")
	flags.StringVar(&f.siteKey, "captcha-site-key", "", "`KEY` of this site at the service")
	flags.StringVar(&f.secretFile, "captcha-secret", "", "`FILE` of the secret that the service gave for the key")
	flags.StringVar(&f.verify, "captcha-verify", "",
		"`URL` of siteverify, if the server reaches it by a proxy of yours (default the service's)")
	cli.InEnv(flags, "captcha", "captcha-site-key", "captcha-secret", "captcha-verify")
}

// config parses the flags; it returns nil if none is set.
func (f *captchaFlags) config() (*web.Captcha, error) {
	if *f == (captchaFlags{}) {
		return nil, nil
	}
	if f.service == "" || f.siteKey == "" || f.secretFile == "" {
		return nil, cli.Usage(errors.New("--captcha, --captcha-site-key and --captcha-secret belong together"),
			"give all three, or none of the --captcha flags")
	}
	c, err := captcha.Open(f.service, f.siteKey, f.secretFile, f.verify)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("--captcha: %w", err), "the file must contain only the secret, and be yours alone: chmod 600")
	}
	return c, nil
}
