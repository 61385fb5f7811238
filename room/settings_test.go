package room

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/branding"
	"github.com/proofline/proofline/room/setting"
)

func TestTargets(t *testing.T) {
	t.Parallel()
	for target, ok := range map[string]bool{
		"https://shop.example.com":                true,
		"https://shop.example.com:8443/":          true,
		"https://shop.example.com/a/b?event=1":    true,
		"https://xn--bcher-kva.example":           true,
		"http://localhost:3000/shop":              true,
		"http://127.0.0.1/shop":                   true,
		"http://127.9.8.7:1":                      true,
		"http://shop.example.com":                 false,
		"http://localhost.example.com":            false,
		"http://127.0.0.1.example.com":            false,
		"HTTPS://shop.example.com":                true, // schemes are not case-sensitive
		"https://Shop.example.com":                false,
		"https://bücher.example":                  false,
		"https://[::1]/":                          false,
		"https://user@shop.example.com":           false,
		"https://user:word@shop.example.com":      false,
		"https://shop.example.com/#part":          false,
		"https://shop.example.com/#":              false,
		"https://shop.example.com/a/../b":         false,
		"https://shop.example.com/a/%2e%2e/b":     false,
		"https://shop.example.com/a%2Fb":          false,
		"https://shop.example.com/a%5cb":          false,
		`https://shop.example.com\@example.org`:   false,
		`https://shop.example.com/\example.org`:   false,
		"https://shop.example.com;script-src":     false,
		"https://shop.example.com 'unsafe-eval'":  false,
		"https://*.example.com":                   false,
		"https://shop.example.com:99999999":       false,
		"https://":                                false,
		"https:shop.example.com":                  false,
		"//shop.example.com":                      false,
		"/shop":                                   false,
		"shop.example.com":                        false,
		"javascript:alert(1)":                     false,
		"data:text/html,hello":                    false,
		"ftp://shop.example.com":                  false,
		"https://shop.example.com/\r\nX-Other: 1": false,
		"": false,
		"https://shop.example.com/" + strings.Repeat("x", setting.MaxTarget): false,
	} {
		problems := Settings{Targets: []string{"https://example.com", target}}.Problems()
		if got := len(problems) == 0; got != ok || !ok && problems[0].Field != "targets[1]" {
			t.Errorf("%q: %v, want ok %t", target, problems, ok)
		}
	}
	if got := (Settings{Targets: slices.Repeat([]string{"https://example.com"}, setting.MaxTargets)}).Problems(); got != nil {
		t.Errorf("%d targets: %v", setting.MaxTargets, got)
	}
	if got := (Settings{Targets: slices.Repeat([]string{"https://example.com"}, setting.MaxTargets+1)}).Problems(); len(got) != 1 || got[0].Field != "targets" {
		t.Errorf("%d targets: %v", setting.MaxTargets+1, got)
	}
}

// TestWantedTarget tries to be sent to other sites.
func TestWantedTarget(t *testing.T) {
	t.Parallel()
	s := &Settings{Targets: []string{"https://shop.example.com/sale?from=line", "https://a.example.com/", "https://b.example.com", "http://localhost:3000/x/"}}
	for wanted, want := range map[string]string{
		"":                                       "https://shop.example.com/sale?from=line",
		"https://shop.example.com/sale":          "same",
		"https://shop.example.com/sale/":         "same",
		"https://shop.example.com/sale/7?size=L": "same",
		"https://shop.example.com/sale?x=1":      "same",
		"https://a.example.com/anything":         "same",
		"https://a.example.com":                  "same",
		"https://b.example.com/anything":         "same",
		"https://b.example.com":                  "same",
		"http://localhost:3000/x/":               "same",
		"http://localhost:3000/x/y":              "same",
		"http://localhost:3000/x":                "",
		"http://localhost:3001/x/y":              "",
		"https://localhost:3000/x/y":             "",
		"http://a.example.com/":                  "",
		"https://shop.example.com":               "",
		"https://shop.example.com/":              "",
		"https://shop.example.com/sales":         "",
		"https://shop.example.com/sale/../admin": "",
		"https://shop.example.com/sale/%2e%2e/a": "",
		"https://shop.example.com/sale%2f..%2fa": "",
		"https://shop.example.com/sale/#x":       "",
		"https://shop.example.com:444/sale":      "",
		"https://x@shop.example.com/sale":        "",
		"https://shop.example.com.example.org/":  "",
		"https://a.example.com.example.org/":     "",
		"https://a.example.com@example.org/":     "",
		`https://a.example.com\@example.org/`:    "",
		"//a.example.com/":                       "",
		"/\\a.example.com/":                      "",
		"javascript:alert(1)":                    "",
		" https://a.example.com/":                "",
	} {
		u, ok := s.Target(wanted)
		if want == "same" {
			want = wanted
		}
		if ok != (want != "") || ok && u.String() != want {
			t.Errorf("wanted %q: %v %t, want %q", wanted, u, ok, want)
		}
	}
	if _, ok := new(Settings).Target(""); ok {
		t.Error("no targets, and one was found")
	}
	if diff := cmp.Diff([]string{"http://localhost:3000", "https://a.example.com", "https://b.example.com", "https://shop.example.com"}, s.Origins()); diff != "" {
		t.Error(diff)
	}
}

// TestParseSettings lists all mistakes at once, by field.
func TestParseSettings(t *testing.T) {
	t.Parallel()
	for text, fields := range map[string]string{
		`{"slug":"a","targets":"https://example.com","signed_return":"yes","brand":7}`: "targets signed_return brand",
		`{"slug":"a","time_zone":1}`:                                                              "time_zone",
		`{"slug":"a","claim":"1","time_zone":"Vienna"}`:                                           "claim time_zone",
		`{"slug":"a","claim":"1","time_zone":"Local"}`:                                            "claim time_zone",
		`{"slug":"a","targets":[7],"brand":{"logo":7,"color":"x","font":"y"}}`:                    "targets brand.logo brand.color brand.font",
		`{"slug":"-","claim":"1","targets":["x","https://example.com","y"],"brand":{"color":""}}`: "slug claim targets[0] targets[2]",
	} {
		_, err := ParseConfig([]byte(text))
		if got := problemFields(t, err); got != fields {
			t.Errorf("%s: problems with %s, want %s", text, got, fields)
		}
	}
	_, err := ParseAmendment([]byte(`{"targets":["x"],"time_zone":"CEST","brand":{"color":"red","logo":"y"},"slug":"b"}`))
	if got, want := problemFields(t, err), "slug time_zone targets[0] brand.logo brand.color"; got != want {
		t.Errorf("amendment: problems with %s, want %s", got, want)
	}
	c, err := ParseConfig([]byte(`{"slug":"a","time_zone":"Europe/Vienna"}`))
	if err != nil || c.Zone().String() != "Europe/Vienna" || new(Settings).Zone() != time.UTC {
		t.Errorf("time zone: %+v, %v", c, err)
	}
	a, err := ParseAmendment([]byte(`{"targets":[],"brand":{}}`))
	if err != nil || a.Targets == nil || len(*a.Targets) != 0 || a.Brand == nil || !a.Brand.IsZero() {
		t.Errorf("amendment that removes: %+v, %v", a, err)
	}
}

func problemFields(t *testing.T, err error) string {
	t.Helper()
	wrong, ok := errors.AsType[*invalid.Error](err)
	if !ok {
		t.Fatalf("%v, want invalid.Error", err)
	}
	var fields []string
	for _, p := range wrong.Problems {
		fields = append(fields, p.Field)
	}
	return strings.Join(fields, " ")
}

// TestSettings stores settings, changes them one by one, and shows them on another node; none of it is in the
// transcript.
func TestSettings(t *testing.T) {
	t.Parallel()
	url, master := pgtest.URL(t), newMaster(t)
	here := node(t, url, master)
	want := Settings{Targets: []string{"https://shop.example.com"}, Brand: branding.Brand{Scheme: branding.Scheme{Logo: logo(1), Color: "#112233"}}}
	r := create(t, here, Config{Slug: "set", Settings: want})
	plain := create(t, here, Config{Slug: "plain"})
	there := get(t, node(t, url, master), "set")
	for _, room := range []*Room{r, there} {
		if got, version := room.Settings(); version != 1 || cmp.Diff(&want, got) != "" || cmp.Diff(want, room.Config().Settings) != "" {
			t.Errorf("settings %+v, version %d", got, version)
		}
	}
	if got, version := plain.Settings(); version != 0 || cmp.Diff(&Settings{}, got) != "" {
		t.Errorf("no settings: %+v, version %d", got, version)
	}
	want.Brand = branding.Brand{Scheme: branding.Scheme{Background: "#000000"}}
	if err := r.Amend(t.Context(), Amendment{SettingsChange: SettingsChange{Brand: &want.Brand}}); err != nil {
		t.Fatal(err)
	}
	want.Targets, want.TimeZone = []string{"https://a.example.com", "https://b.example.com"}, "Europe/Vienna"
	if err := r.Amend(t.Context(), Amendment{SettingsChange: SettingsChange{Targets: &want.Targets, TimeZone: &want.TimeZone}}); err != nil {
		t.Fatal(err)
	}
	if got, version := r.Settings(); version != 3 || cmp.Diff(&want, got) != "" {
		t.Errorf("amended to %+v, version %d", got, version)
	}
	eventually(t, "the other node has the settings", func() bool {
		got, version := there.Settings()
		return version == 3 && cmp.Diff(&want, got) == ""
	})
	if err := r.Amend(t.Context(), Amendment{SettingsChange: SettingsChange{Targets: &[]string{}, Brand: &branding.Brand{}}}); err != nil {
		t.Fatal(err)
	}
	if got, _ := r.Settings(); len(got.Targets) != 0 || !got.Brand.IsZero() {
		t.Errorf("removed, and left is %+v", got)
	}
	if err := r.Amend(t.Context(), Amendment{SettingsChange: SettingsChange{Targets: &[]string{"x"}}}); problemFields(t, err) != "targets[0]" {
		t.Errorf("wrong target: %v", err)
	}
	if size := r.Snapshot().Size; size != 1 {
		t.Errorf("the transcript has %d entries, want the policy alone", size)
	}
}
