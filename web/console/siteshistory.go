package console

import (
	"strconv"

	"github.com/proofline/proofline/console/account"
	sites "github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/internal/invalid"
)

// siteHistoryPage is what a site's history shows.
type siteHistoryPage struct {
	Name     string
	Versions []sites.Version // the newest first
}

func (c *Console) showSiteHistory(x *request) error {
	ctx, cancel := x.wait()
	defer cancel()
	list, err := c.Sites.History(ctx, x.Actor, x.Param("site"))
	if err != nil {
		return err
	}
	return x.page("site-history", siteHistoryPage{x.Param("site"), list})
}

// versionPage is what the page of earlier rules shows.
type versionPage struct {
	sites.Site
	InForce uint64     // the version of the rules now
	Before  uint64     // the version before; 0: there is none, or it is forgotten
	Made    []diffLine // what it changed, of the one before
	Undoes  []diffLine // what putting it back would change
}

// IsInForce tells whether these are the rules now.
func (p versionPage) IsInForce() bool { return p.Version == p.InForce }

func (c *Console) showVersion(x *request) error {
	ctx, cancel := x.wait()
	defer cancel()
	name := x.Param("site")
	version, err := x.version()
	if err != nil {
		return err
	}
	now, err := c.Sites.Site(ctx, x.Actor, name)
	if err != nil {
		return err
	}
	p := versionPage{InForce: now.Version}
	if p.Site, err = c.Sites.Version(ctx, x.Actor, name, version); err != nil {
		return err
	}
	p.Undoes = diffOf(string(now.Rules), string(p.Rules))
	history, err := c.Sites.History(ctx, x.Actor, name)
	if err != nil {
		return err
	}
	for _, v := range history { // the newest first
		if v.Number < version {
			p.Before = v.Number
			break
		}
	}
	if p.Before > 0 {
		before, err := c.Sites.Version(ctx, x.Actor, name, p.Before)
		if err != nil {
			return err
		}
		p.Made = diffOf(string(before.Rules), string(p.Rules))
	}
	return x.page("site-version", p)
}

// version is that of the path.
func (x *request) version() (uint64, error) {
	version, err := strconv.ParseUint(x.Param("version"), 10, 63)
	if err != nil {
		return 0, account.ErrNotFound
	}
	return version, nil
}

func (c *Console) restoreRules(x *request) error {
	ctx, cancel := x.wait()
	defer cancel()
	name := x.Param("site")
	version, err := x.version()
	if err != nil {
		return err
	}
	if _, err := c.Sites.Version(ctx, x.Actor, name, version); err != nil {
		return err
	}
	page := "/sites/" + name + "/history/" + strconv.FormatUint(version, 10)
	if !x.isConfirmed() {
		return x.confirm(plainQuestion("Restore version "+strconv.FormatUint(version, 10)+" of the rules?", "Restore these rules", "They become a new version. Connectors take it within seconds."), page)
	}
	seen, err := strconv.ParseUint(x.form("seen"), 10, 63)
	if err != nil || seen == 0 {
		return invalid.Field("seen", "must be the version of the rules in force: load the page again")
	}
	if _, err := c.Sites.Restore(ctx, x.Actor, name, seen, version); err != nil {
		return err
	}
	return x.done("/sites/"+name, "site-restored")
}
