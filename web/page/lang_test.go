package page_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/web/page"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		accept, chosen string
		want           page.Lang
	}{
		{"", "", "en"},
		{"de", "", "de"},
		{"de-CH,de;q=0.9,en;q=0.8", "", "de"},
		{"pt-PT,pt;q=0.9", "", "pt"},
		{"es-419", "", "es"},
		{"fr-CA;q=0.5, ja;q=0.9", "", "ja"},
		{"ar-EG", "", "ar"},
		{"sv, it;q=0.2", "", "it"},
		{"sv", "", "en"},
		{"en-GB", "ja", "ja"},
		{"de", "xx", "de"},
		{"de", `"><script>`, "de"},
		{"*", "", "en"},
		{";;;q=,,=", "", "en"},
		{"de;q=no", "", "en"},
	} {
		if got := page.Match(c.accept, c.chosen); got != c.want {
			t.Errorf("Match(%q, %q) = %s, want %s", c.accept, c.chosen, got, c.want)
		}
	}
}

func TestLanguagesIsACopy(t *testing.T) {
	page.Languages()[0] = "xx"
	if got := page.Languages()[0]; got != "en" {
		t.Errorf("the fallback is %s", got)
	}
}

// TestMatchOffered checks that only offered languages are chosen.
func TestMatchOffered(t *testing.T) {
	all := page.Languages()
	slices.Reverse(all)
	for _, c := range []struct {
		accept, chosen string
		offered        []page.Lang
		want           page.Lang
	}{
		{"", "", []page.Lang{"de", "fr"}, "de"},
		{"en", "", []page.Lang{"de", "fr"}, "de"},
		{"en, fr;q=0.5", "", []page.Lang{"de", "fr"}, "fr"},
		{"en, fr-CA;q=0.5, de-AT;q=0.6", "", []page.Lang{"de", "fr"}, "de"},
		{"fr", "en", []page.Lang{"de", "fr"}, "fr"},
		{"fr", "de", []page.Lang{"de", "fr"}, "de"},
		{"sv", "", all, "ar"},
		{"it", "", all, "it"},
		{"de;q=no", "", []page.Lang{"ja"}, "ja"},
	} {
		if got := page.Match(c.accept, c.chosen, c.offered...); got != c.want {
			t.Errorf("Match(%q, %q, %v) = %s, want %s", c.accept, c.chosen, c.offered, got, c.want)
		}
	}
}

func TestWanted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		accept  string
		page    page.Lang
		offered []page.Lang
		want    []string
	}{
		{"", "en", nil, []string{"en"}},
		{"nl, en;q=0.5", "en", nil, []string{"nl", "en", "en"}},
		{"nl, en;q=0.5", "ja", nil, []string{"ja", "nl", "en"}}, // chosen
		{"fr", "de", []page.Lang{"de"}, []string{"fr", "de"}},
		{"de-AT;q=0.5, pt-br", "pt", nil, []string{"pt-BR", "de-AT", "pt"}},
		{`"><script>`, "en", nil, []string{"en"}},
	} {
		if got := page.Wanted(c.accept, c.page, c.offered...); !slices.Equal(got, c.want) {
			t.Errorf("Wanted(%q, %q) = %q, want %q", c.accept, c.page, got, c.want)
		}
	}
	if got := page.Wanted(strings.Repeat("de-x-a,", 50)+"de", "en"); len(got) > 11 {
		t.Errorf("%d languages", len(got))
	}
}
