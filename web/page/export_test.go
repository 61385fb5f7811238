package page

import "maps"

// Messages returns the messages of a language, by key and plural form.
func (p *Pages) Messages(l Lang) map[string]map[string]string {
	all := map[string]map[string]string{}
	for key, m := range p.set.speakers[l].catalog {
		all[key] = m.texts
	}
	return all
}

// Without returns the pages without one message in one language, or an error if the templates need it.
func (p *Pages) Without(l Lang, key string) (*Pages, error) {
	speaker := *p.set.speakers[l]
	speaker.catalog = maps.Clone(speaker.catalog)
	delete(speaker.catalog, key)
	s := &set{p.set.files, maps.Clone(p.set.speakers), maps.Clone(p.set.templates)}
	s.speakers[l] = &speaker
	var err error
	s.templates[l], err = s.translate(&speaker)
	return &Pages{s}, err
}

// Count returns the form of a message for a number.
func (p *Pages) Count(l Lang, key string, n uint64) (string, error) {
	html, err := p.set.speakers[l].Count(key, "", n)
	return string(html), err
}

// Form returns the name of the form for a number.
func (p *Pages) Form(l Lang, key string, n uint64) string {
	return p.set.speakers[l].form(p.set.speakers[l].catalog[key], n)
}

// Category returns the plural category of a number.
func (p *Pages) Category(l Lang, n uint64) string { return p.set.speakers[l].category(n) }

var (
	Step  = step
	Round = clock.round
)

// Clock exports clock.
type Clock = clock

// At returns a fixed clock.
func At(v View) Clock { return clock{now: v.Now, zone: v.Room.Zone, seconds: v.Ticket.isBrief()} }
