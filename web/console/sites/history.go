package sites

import (
	"strconv"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/web/console/shell"
)

// siteHistoryPage is the data of a site's history.
type siteHistoryPage struct {
	Name     string
	Versions []site.Version // newest first
}

func (h *handlers) history(x *shell.Request) error {
	ctx, cancel := x.Wait()
	defer cancel()
	list, err := h.sites.History(ctx, x.Actor, x.Param("site"))
	if err != nil {
		return err
	}
	return x.Page("site-history", siteHistoryPage{x.Param("site"), list})
}

// versionPage is the data of the page of earlier rules.
type versionPage struct {
	site.Site
	InForce uint64     // version of the current rules
	Before  uint64     // the previous version; 0: none is stored
	Made    []diffLine // changes against the previous version
	Undoes  []diffLine // changes that restoring it would make
}

// IsInForce reports whether these are the current rules.
func (p versionPage) IsInForce() bool { return p.Version == p.InForce }

func (h *handlers) version(x *shell.Request) error {
	ctx, cancel := x.Wait()
	defer cancel()
	name := x.Param("site")
	version, err := versionOf(x)
	if err != nil {
		return err
	}
	now, err := h.sites.Site(ctx, x.Actor, name)
	if err != nil {
		return err
	}
	p := versionPage{InForce: now.Version}
	if p.Site, err = h.sites.Version(ctx, x.Actor, name, version); err != nil {
		return err
	}
	p.Undoes = diffOf(string(now.Rules), string(p.Rules))
	history, err := h.sites.History(ctx, x.Actor, name)
	if err != nil {
		return err
	}
	for _, v := range history { // newest first
		if v.Number < version {
			p.Before = v.Number
			break
		}
	}
	if p.Before > 0 {
		before, err := h.sites.Version(ctx, x.Actor, name, p.Before)
		if err != nil {
			return err
		}
		p.Made = diffOf(string(before.Rules), string(p.Rules))
	}
	return x.Page("site-version", p)
}

// versionOf returns the version in the path.
func versionOf(x *shell.Request) (uint64, error) {
	version, err := strconv.ParseUint(x.Param("version"), 10, 63)
	if err != nil {
		return 0, account.ErrNotFound
	}
	return version, nil
}

func (h *handlers) restore(x *shell.Request) error {
	ctx, cancel := x.Wait()
	defer cancel()
	name := x.Param("site")
	version, err := versionOf(x)
	if err != nil {
		return err
	}
	if _, err := h.sites.Version(ctx, x.Actor, name, version); err != nil {
		return err
	}
	page := "/sites/" + name + "/history/" + strconv.FormatUint(version, 10)
	if !x.IsConfirmed() {
		return x.Confirm(shell.Ask("Restore version "+strconv.FormatUint(version, 10)+" of the rules?",
			"Restore these rules", "They become a new version. Connectors apply it within seconds."), page)
	}
	seen, err := strconv.ParseUint(x.Form("seen"), 10, 63)
	if err != nil || seen == 0 {
		return invalid.Field("seen", "must be the version of the current rules: load the page again")
	}
	if _, err := h.sites.Restore(ctx, x.Actor, name, seen, version); err != nil {
		return err
	}
	return x.Done("/sites/"+name, "site-restored")
}
