package page_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/proofline/proofline/room/style"
	"github.com/proofline/proofline/web/page"
)

var property = regexp.MustCompile(`--([a-z-]+):(#[0-9a-f]{6})[;}]`)

// readable lists which colours must be readable on which.
var readable = map[string][]string{
	"ink": {"page", "card"}, "soft": {"page", "card"}, "accent-ink": {"page", "card"}, "on-accent": {"accent"},
	"good": {"page", "card"}, "open": {"page", "card"}, "bad": {"page", "card"},
}

// TestBrandContrast checks that all text of the style sheet is readable on its backgrounds, whatever
// colours an organizer chose.
func TestBrandContrast(t *testing.T) {
	levels := []int{0, 51, 102, 118, 153, 204, 255}
	colors := []string{"", "#767676", "#777777", "#2d3034"}
	for _, r := range levels {
		for _, g := range levels {
			for _, b := range levels {
				colors = append(colors, fmt.Sprintf("#%02x%02x%02x", r, g, b))
			}
		}
	}
	for i, color := range colors {
		for _, background := range []string{"", colors[(i*37)%len(colors)], colors[(i*101+7)%len(colors)]} {
			css, err := page.Brand{Colors: page.Colors{Color: color, Background: background}}.CSS()
			if err != nil {
				t.Fatal(err)
			}
			schemes := strings.SplitAfter(string(css), "@media")
			if len(schemes) != 2 && color+background != "" {
				t.Fatalf("not two schemes: %s", css)
			}
			for _, scheme := range schemes {
				if color == "" && background == "" {
					continue // nothing is set
				}
				checkContrast(t, scheme)
			}
		}
	}
}

func checkContrast(t *testing.T, scheme string) {
	t.Helper()
	set := map[string]string{}
	for _, m := range property.FindAllStringSubmatch(scheme, -1) {
		set[m[1]] = m[2]
	}
	for text, grounds := range readable {
		for _, ground := range grounds {
			contrast, err := contrastOf(set[text], set[ground])
			if err != nil || contrast < 4.5 {
				t.Errorf("%s on %s contrasts by %.2f, %v: %s", text, ground, contrast, err, scheme)
			}
		}
	}
}

func TestBrandRefuses(t *testing.T) {
	for _, wrong := range []string{"red", "#fff", "#12345g", "#1234567", " #123456", "#123456}body{display:none"} {
		if _, err := (page.Brand{Colors: page.Colors{Color: wrong}}).CSS(); !errors.Is(err, page.ErrColor) {
			t.Errorf("color %q: %v", wrong, err)
		}
		for _, colors := range []page.Colors{{Background: wrong}, {Color: wrong}} {
			if _, err := (page.Brand{Dark: colors}).CSS(); !errors.Is(err, page.ErrColor) {
				t.Errorf("dark %v: %v", colors, err)
			}
			if _, err := (page.Brand{Colors: colors}).Contrast(); !errors.Is(err, page.ErrColor) {
				t.Errorf("contrast of %v: %v", colors, err)
			}
		}
	}
}

func contrastOf(a, b string) (float64, error) {
	x, err := style.ParseColor(a)
	if err != nil {
		return 0, err
	}
	y, err := style.ParseColor(b)
	return x.Contrast(y), err
}

// TestContrast compares contrasts with known values.
func TestContrast(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want float64
	}{
		{"#000000", "#ffffff", 21}, {"#777777", "#ffffff", 4.478}, {"#767676", "#ffffff", 4.542}, {"#ff0000", "#ffffff", 3.998},
	} {
		if got, err := contrastOf(c.a, c.b); err != nil || got < c.want-0.001 || got > c.want+0.001 {
			t.Errorf("contrast of %s and %s = %.3f, %v, want %.3f", c.a, c.b, got, err, c.want)
		}
	}
}

// TestStyleContrast checks the default colours in page.css in the same way.
func TestStyleContrast(t *testing.T) {
	css, err := os.ReadFile("../ui/src/style/page.css")
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	schemes := strings.SplitN(string(css), "@media (prefers-color-scheme: dark)", 2)
	if len(schemes) != 2 {
		t.Fatal("page.css has no dark scheme")
	}
	for _, scheme := range schemes {
		scheme, _, _ = strings.Cut(scheme, "*,")
		for _, m := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{3,6});`).FindAllStringSubmatch(scheme, -1) {
			values[m[1]] = m[2]
			if c := m[2]; len(c) == 4 {
				values[m[1]] = fmt.Sprintf("#%c%c%c%c%c%c", c[1], c[1], c[2], c[2], c[3], c[3])
			}
		}
		for text, grounds := range readable {
			for _, ground := range grounds {
				contrast, err := contrastOf(values[text], values[ground])
				if err != nil || contrast < 4.5 {
					t.Errorf("%s on %s contrasts by %.2f, %v", text, ground, contrast, err)
				}
			}
		}
	}
	// Brands start from the same page colours.
	if values["page"] != style.DarkPage.String() {
		t.Errorf("page.css has --page: %s in the dark, the brand %s", values["page"], style.DarkPage.String())
	}
}

// TestLooks checks the CSS for fonts, corners, dark colours and custom CSS.
func TestLooks(t *testing.T) {
	own, problems := style.Parse("h2{gap:0}@media (prefers-color-scheme:dark){h2{gap:1rem}}")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, c := range []struct {
		brand page.Brand
		in    style.Scheme
		want  []string
		not   []string
	}{
		{page.Brand{}, style.Any, []string{"\n"}, []string{"{"}},
		{page.Brand{Font: "serif", Corners: "square"}, style.Any, []string{"html{font-family:ui-serif,", ":root{--round:0}"}, []string{"--page"}},
		{page.Brand{Font: "system", Corners: "round"}, style.Any, []string{"\n"}, []string{"{"}},
		{page.Brand{Own: own}, style.Any, []string{"body h2{gap: 0}", "@media (prefers-color-scheme: dark){body h2{gap: 1rem}}"}, nil},
		{page.Brand{Own: own}, style.Light, []string{"body h2{gap: 0}", "color-scheme:light;--page:#ffffff"}, []string{"1rem", "#121417"}},
		{page.Brand{Own: own}, style.Dark, []string{"body h2{gap: 0}", "body h2{gap: 1rem}", "color-scheme:dark;--page:#121417", "--accent:#8fb0ff"}, []string{"--page:#ffffff"}},
		{page.Brand{Dark: page.Colors{Color: "#ff0000", Background: "#001122"}}, style.Any, []string{":root{--page:#ffffff", "--accent:#1d4ed8", "{:root{--page:#001122", "--accent:#ff0000"}, nil},
		{page.Brand{Colors: page.Colors{Color: "#ff0000", Background: "#001122"}}, style.Dark, []string{"--page:#001122", "--accent:#ff0000"}, nil},
		{page.Brand{Colors: page.Colors{Background: "#eeeeee"}}, style.Dark, []string{"--page:#121417"}, []string{"#eeeeee"}},
	} {
		css, err := c.brand.In(c.in)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(string(css), want) {
				t.Errorf("%+v in %q has no %q: %s", c.brand, c.in, want, css)
			}
		}
		for _, not := range c.not {
			if strings.Contains(string(css), not) {
				t.Errorf("%+v in %q has %q: %s", c.brand, c.in, not, css)
			}
		}
	}
}

// TestFindings checks the findings for unreadable colours.
func TestFindings(t *testing.T) {
	list, err := page.Brand{Colors: page.Colors{Color: "#ffee00"}, Dark: page.Colors{Background: "#ffffff"}}.Contrast()
	if err != nil || len(list) != 12 {
		t.Fatalf("%d findings, %v", len(list), err)
	}
	by := map[string]page.Finding{}
	for _, f := range list {
		by[string(f.Scheme)+": "+f.Pair] = f
		if f.Required == 4.5 && !f.Good() {
			t.Errorf("left unreadable: %+v", f)
		}
		if f.Where == "" || f.Repaired != (f.Given != f.Shown) {
			t.Errorf("%+v", f)
		}
	}
	links := by["light: links on the page"]
	if links.Given != "#ffee00" || links.Ground != "#ffffff" || !links.Repaired || links.Ratio > 1.3 || links.Then < 4.5 {
		t.Errorf("links: %+v", links)
	}
	if button := by["light: a button on the page"]; button.Good() || button.Repaired || button.Required != 3 {
		t.Errorf("a yellow button on white: %+v", button)
	}
	if text := by["light: text of a button"]; !text.Good() || text.Repaired || text.Given != "#000000" {
		t.Errorf("its text: %+v", text)
	}
	if links := by["dark: links on the page"]; links.Ground != "#ffffff" {
		t.Errorf("the dark is white here: %+v", links)
	}
}
