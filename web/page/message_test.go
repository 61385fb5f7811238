package page_test

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/web/page"
)

// TestMessagesComplete checks that all languages have the same messages as English.
func TestMessagesComplete(t *testing.T) {
	p := newPages(t, manifest)
	want := slices.Sorted(maps.Keys(p.Messages("en")))
	for _, l := range page.Languages() {
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(p.Messages(l)))); diff != "" {
			t.Errorf("messages of %s (-English +own):\n%s", l, diff)
		}
		for key, m := range p.Messages(l) {
			for form, text := range m {
				if strings.TrimSpace(text) == "" || text != strings.TrimSpace(text) {
					t.Errorf("%s %s %s: empty, or with space around it: %q", l, key, form, text)
				}
			}
		}
	}
}

// TestMessagesUsed checks that each message is used, by removing it: some page must fail.
func TestMessagesUsed(t *testing.T) {
	whole := newPages(t, manifest)
	for key := range whole.Messages("en") {
		if p, err := whole.Without("en", key); err == nil && rendersAll(p) {
			t.Errorf("no page uses %s", key)
		}
	}
}

// rendersAll reports whether every page can be rendered in English.
func rendersAll(p *page.Pages) bool {
	var b bytes.Buffer
	for _, v := range lines {
		v.Lang = "en"
		if p.Visitor(&b, v) != nil {
			return false
		}
	}
	for _, chance := range []page.Chance{page.ChanceNone, page.ChanceOther, page.ChancePublic} {
		if p.Fair(&b, page.FairView{Room: lines["waiting"].Room, Lang: "en", Now: noon, Chance: chance, Report: &noon}) != nil {
			return false
		}
	}
	for _, reason := range []page.Reason{"", page.ReasonBot, page.ReasonDuplicate, page.ReasonFraud, page.ReasonLarge, page.ReasonRequest} {
		if p.Visitor(&b, change(settled(page.Revoked), func(v *page.View) { v.Lang, v.Ticket.Reason = "en", reason })) != nil {
			return false
		}
	}
	if p.Home(&b, page.HomeView{Lang: "en", Console: "/console"}) != nil {
		return false
	}
	for _, v := range checks {
		v.Lang = "en"
		if p.Check(&b, v) != nil {
			return false
		}
	}
	for _, v := range failures {
		v.Lang = "en"
		if p.Error(&b, v) != nil {
			return false
		}
	}
	return true
}

var placeholder = regexp.MustCompile(`\{[a-z]*\}`)

// placeholders returns the placeholders of a text, without duplicates.
func placeholders(text string) []string {
	found := placeholder.FindAllString(text, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

// TestMessagePlaceholders compares placeholders with the English ones. A form
// for a single number may leave the number out.
func TestMessagePlaceholders(t *testing.T) {
	p := newPages(t, manifest)
	for _, l := range page.Languages() {
		for key, m := range p.Messages(l) {
			want := placeholders(p.Messages("en")[key]["other"])
			for form, text := range m {
				got := placeholders(text)
				if slices.Equal(got, want) || len(got) == 0 && isSingle(p, l, form) {
					continue
				}
				t.Errorf("%s %s %s has placeholders %v, in English %v", l, key, form, got, want)
			}
		}
	}
}

// isSingle reports whether a form is for a single number.
func isSingle(p *page.Pages, l page.Lang, form string) bool {
	if strings.HasPrefix(form, "=") {
		return true
	}
	of := 0
	for n := range uint64(1000) {
		if p.Category(l, n) == form {
			of++
		}
	}
	return of == 1 || form == "one" // in French and Portuguese, "one" is also the form for 0; the number shows which
}

// TestMessageForms checks that every number has a form, and every form a number.
func TestMessageForms(t *testing.T) {
	p := newPages(t, manifest)
	for _, l := range page.Languages() {
		for key, m := range p.Messages(l) {
			if len(m) == 1 && (l != "ja" || len(p.Messages("en")[key]) == 1) {
				continue // no plural forms
			}
			unused := maps.Clone(m)
			for n := range uint64(1000) {
				_, exact := m["="+strconv.FormatUint(n, 10)]
				if category := p.Category(l, n); !exact && m[category] == "" {
					t.Fatalf("%s %s has no form %q for %d", l, key, category, n)
				}
				delete(unused, p.Form(l, key, n))
			}
			if len(unused) > 0 {
				t.Errorf("%s %s has forms for no number: %v", l, key, unused)
			}
		}
	}
}

func TestCount(t *testing.T) {
	p := newPages(t, manifest)
	for _, c := range []struct {
		lang page.Lang
		key  string
		n    uint64
		want string
	}{
		{"en", "drawn.ahead", 0, "You are next."},
		{"en", "drawn.ahead", 1, "1 person is ahead of you."},
		{"en", "drawn.ahead", 3210, "3,210 people are ahead of you."},
		{"en", "drawn.ahead", 1<<64 - 1, "18,446,744,073,709,551,615 people are ahead of you."},
		{"de", "waiting.ahead", 1234567, "1.234.567 Personen sind in früheren Gruppen."},
		{"fr", "drawn.ahead", 1, "1 personne est devant vous."},
		{"ja", "drawn.ahead", 1, "あなたの前に1人います。"},
		{"ar", "drawn.ahead", 1, "أمامك شخص واحد."},
		{"ar", "drawn.ahead", 2, "أمامك شخصان."},
		{"ar", "drawn.ahead", 5, "أمامك 5 أشخاص."},
		{"ar", "drawn.ahead", 11, "أمامك 11 شخصًا."},
		{"ar", "drawn.ahead", 1_000_100, "أمامك 1,000,100 شخص."},
		{"ar", "drawn.ahead", 10_000_011, "أمامك 10,000,011 شخصًا."},
	} {
		if got, err := p.Count(c.lang, c.key, c.n); err != nil || got != c.want {
			t.Errorf("%s %s of %d = %q, %v, want %q", c.lang, c.key, c.n, got, err, c.want)
		}
	}
}
