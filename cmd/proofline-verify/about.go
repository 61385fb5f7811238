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

// aboutFlags set the heading of a report page, which the transcript does not contain.
type aboutFlags struct{ event, organizer, zone string }

func (f *aboutFlags) define(c *cobra.Command) {
	c.Flags().StringVar(&f.event, "event", "", "name of the event, as `TEXT` on the page (default: the room's title)")
	c.Flags().StringVar(&f.organizer, "organizer", "", "name of the organizer, as `TEXT` on the page")
	c.Flags().StringVar(&f.zone, "time-zone", "",
		"time `ZONE` of the page, such as Europe/Vienna, shown in addition to UTC (default: the room's)")
}

func (f *aboutFlags) check() error {
	if _, err := zone.Parse(f.zone); err != nil {
		return usage(err, "give a name of the IANA time zone database, such as Europe/Vienna")
	}
	return nil
}

// apply sets title, organizer and time zone of a page from the flags, or else from the room.
func (f *aboutFlags) apply(ctx context.Context, src verifier.Source, a *report.Audit) {
	about, err := source.ReadAbout(ctx, src)
	if err != nil {
		about = source.About{} // a source need not describe its room
	}
	a.Title, a.Organizer = cmp.Or(f.event, about.Title), f.organizer
	if a.Zone, err = zone.Parse(cmp.Or(f.zone, about.TimeZone)); err != nil {
		a.Zone = time.UTC // the room has no time zone
	}
}
