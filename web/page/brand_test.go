package page_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/proofline/proofline/web/page"
)

var property = regexp.MustCompile(`--([a-z-]+):(#[0-9a-f]{6})[;}]`)

// readable is which colours have to be readable on which.
var readable = map[string][]string{
	"ink": {"page", "card"}, "soft": {"page", "card"}, "accent-ink": {"page", "card"}, "on-accent": {"accent"},
	"good": {"page", "card"}, "open": {"page", "card"}, "bad": {"page", "card"},
}

// TestBrandContrast reads what the stylesheet sets, and wants every text to be
// readable on everything it stands on, whatever colours an organizer chose.
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
			css, err := page.Brand{Color: color, Background: background}.CSS()
			if err != nil {
				t.Fatal(err)
			}
			schemes := strings.SplitAfter(string(css), "@media")
			if len(schemes) != 2 {
				t.Fatalf("not two schemes: %s", css)
			}
			for _, scheme := range schemes {
				checkContrast(t, scheme, color == "")
			}
		}
	}
}

func checkContrast(t *testing.T, scheme string, ownAccent bool) {
	t.Helper()
	set := map[string]string{}
	for _, m := range property.FindAllStringSubmatch(scheme, -1) {
		set[m[1]] = m[2]
	}
	for text, grounds := range readable {
		if ownAccent && strings.Contains(text, "accent") {
			continue
		}
		for _, ground := range grounds {
			contrast, err := page.Contrast(set[text], set[ground])
			if err != nil || contrast < 4.5 {
				t.Errorf("%s on %s contrasts by %.2f, %v: %s", text, ground, contrast, err, scheme)
			}
		}
	}
}

func TestBrandRefuses(t *testing.T) {
	for _, wrong := range []string{"red", "#fff", "#12345g", "#1234567", " #123456", "#123456}body{display:none"} {
		if _, err := (page.Brand{Color: wrong}).CSS(); !errors.Is(err, page.ErrColor) {
			t.Errorf("color %q: %v", wrong, err)
		}
		if _, err := (page.Brand{Background: wrong}).CSS(); !errors.Is(err, page.ErrColor) {
			t.Errorf("background %q: %v", wrong, err)
		}
	}
}

// TestContrast compares with values that are known.
func TestContrast(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want float64
	}{
		{"#000000", "#ffffff", 21}, {"#777777", "#ffffff", 4.478}, {"#767676", "#ffffff", 4.542}, {"#ff0000", "#ffffff", 3.998},
	} {
		if got, err := page.Contrast(c.a, c.b); err != nil || got < c.want-0.001 || got > c.want+0.001 {
			t.Errorf("contrast of %s and %s = %.3f, %v, want %.3f", c.a, c.b, got, err, c.want)
		}
	}
}

// TestStyleContrast holds our own colours to the same, as page.css has them.
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
				contrast, err := page.Contrast(values[text], values[ground])
				if err != nil || contrast < 4.5 {
					t.Errorf("%s on %s contrasts by %.2f, %v", text, ground, contrast, err)
				}
			}
		}
	}
	// The brand's stylesheet starts from the same pages.
	if values["page"] != page.DarkPage {
		t.Errorf("page.css has --page: %s in the dark, the brand %s", values["page"], page.DarkPage)
	}
}
