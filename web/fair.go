package web

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/web/brand"
	"github.com/proofline/proofline/web/page"
	"github.com/proofline/proofline/web/reply"
)

// reportPolicy is the Content-Security-Policy of audit reports, which need only their own styles.
const reportPolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// fairPage serves the page about what a room proves and how to check it.
func (p *pages) fairPage(c echo.Context, r *room.Room) error {
	settings, _ := r.Settings()
	lang := language(c, brand.Languages(&settings.Brand)...)
	v := page.FairView{Room: p.renderer.roomView(c, r, lang), Lang: lang, Now: r.Now(), URL: r.URL, Chance: chanceOf(r),
		Slots: r.Snapshot().Slots > 0}
	if p.reports != nil {
		switch head, err := p.reports.ReportHead(c.Request().Context(), r.ID); {
		case err == nil:
			v.Report = &head.Made
		case !errors.Is(err, pgroom.ErrNotFound):
			return err
		}
	}
	keepLanguage(c, lang)
	return sendPage(c, http.StatusOK, func(w io.Writer) error { return p.renderer.pages.Fair(w, v) })
}

// chanceOf returns the source of randomness of a room's draws.
func chanceOf(r *room.Room) page.Chance {
	b := r.Policy().Beacon
	switch {
	case b == nil:
		return page.ChanceNone
	case b.Hash() == beacon.Quicknet().Hash():
		return page.ChancePublic
	}
	return page.ChanceOther
}

// report serves the organizer's audit report.
func (p *pages) report(c echo.Context, r *room.Room) error {
	if p.reports == nil {
		return echo.ErrNotFound
	}
	stored, err := p.reports.Report(c.Request().Context(), r.ID)
	if errors.Is(err, pgroom.ErrNotFound) {
		return echo.ErrNotFound
	}
	if err != nil {
		return err
	}
	h := c.Response().Header()
	h["Cache-Control"] = reply.Minutes
	h["Content-Security-Policy"] = []string{reportPolicy}
	body := reply.Coded(c, nil, func() []byte { return stored.HTML })
	if body == nil {
		if body, err = inflate(stored.HTML); err != nil {
			return err
		}
	}
	return reply.Send(c, http.StatusOK, htmlText, body)
}

func inflate(compressed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
