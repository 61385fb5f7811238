package main

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/internal/zone"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/report"
	"github.com/proofline/proofline/verifier/source"
)

// aboutFlags say what a page for people begins with, and no transcript has.
type aboutFlags struct{ event, organizer, zone string }

func (f *aboutFlags) define(c *cobra.Command) {
	c.Flags().StringVar(&f.event, "event", "", "call the event `TEXT` on the page (default what the room calls itself)")
	c.Flags().StringVar(&f.organizer, "organizer", "", "call its organizer `TEXT` on the page")
	c.Flags().StringVar(&f.zone, "time-zone", "", "give times on the page in this `ZONE`, such as Europe/Vienna, beside UTC (default the room's)")
}

func (f *aboutFlags) check() error {
	if _, err := zone.Parse(f.zone); err != nil {
		return usage(err, "give a name of the IANA time zone database, such as Europe/Vienna")
	}
	return nil
}

// apply says on a page what the flags say, or else the room.
func (f *aboutFlags) apply(ctx context.Context, src verifier.Source, a *report.Audit) {
	about, err := source.ReadAbout(ctx, src)
	if err != nil {
		about = source.About{} // the page is as good without it
	}
	a.Title, a.Organizer = cmp.Or(f.event, about.Title), f.organizer
	if a.Zone, err = zone.Parse(cmp.Or(f.zone, about.TimeZone)); err != nil {
		a.Zone = time.UTC // the room names none
	}
}
