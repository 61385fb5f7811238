package style

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParse parses allowed CSS, and writes it out again.
func TestParse(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"":                                      "",
		"/* nothing */":                         "",
		"h1{}":                                  "",
		"h1{font-weight:800}":                   "h1 {\n  font-weight: 800;\n}\n",
		"H1{}":                                  "problem",
		"h1{FONT-WEIGHT: BOLD;;}":               "h1 {\n  font-weight: bold;\n}\n",
		"h1 , .lead{ text-align:center }":       "h1,\n.lead {\n  text-align: center;\n}\n",
		"main>section h2:hover{margin:0 .5REM}": "main > section h2:hover {\n  margin: 0 0.5rem;\n}\n",
		"h2{margin:1rem;margin:2rem}":           "h2 {\n  margin: 2rem;\n}\n",
		"header{background:#ABC}":               "header {\n  background: #aabbcc;\n}\n",
		"header{background:#000;color:#fff}":    "header {\n  background: #000000;\n  color: #ffffff;\n}\n",
		"header{background:linear-gradient(to right,#fff,#eee 50%)}":                     "header {\n  background: linear-gradient(to right, #ffffff, #eeeeee 50%);\n}\n",
		"header{background:radial-gradient(#fff,#eee)}":                                  "header {\n  background: radial-gradient(#ffffff, #eeeeee);\n}\n",
		"header{background:linear-gradient(45deg,#000,#222,#111)}":                       "header {\n  background: linear-gradient(45deg, #000000, #222222, #111111);\n}\n",
		"h2{color:var( --accent-ink )}":                                                  "h2 {\n  color: var(--accent-ink);\n}\n",
		"section{box-shadow:0 2px 8px #00000040}":                                        "section {\n  box-shadow: 0 2px 8px #00000040;\n}\n",
		"section{border:1px solid var(--rule);border-radius:50%}":                        "section {\n  border: 1px solid var(--rule);\n  border-radius: 50%;\n}\n",
		"@media (prefers-color-scheme:DARK) AND (min-width: 40REM){h2{font-weight:700}}": "@media (prefers-color-scheme: dark) and (min-width: 40rem) {\n  h2 {\n    font-weight: 700;\n  }\n}\n",
		"@media (max-width:20rem){}":                                                     "",
		"h2{}/**/@media (min-width:1px){h2{gap:0}} h2{gap:1rem}":                         "@media (min-width: 1px) {\n  h2 {\n    gap: 0;\n  }\n}\n\nh2 {\n  gap: 1rem;\n}\n",
	} {
		s, problems := Parse(source)
		if want == "problem" {
			if len(problems) == 0 {
				t.Errorf("%s: accepted as %s", source, s.Source())
			}
			continue
		}
		if len(problems) > 0 {
			t.Errorf("%s: %v", source, problems)
			continue
		}
		if got := s.Source(); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", source, got, want)
		}
	}
}

// refused lists attacks and mistakes, and the places where they are found.
var refused = []struct{ name, source, where string }{
	{"load", "h2{background:url(https://example.org/x.png)}", "1:15"},
	{"load by variable", "h2{background:var(--x)}", "1:15"},
	{"import", "@import 'https://example.org/x.css';h2{gap:0}", "1:1"},
	{"font", "@font-face{font-family:x;src:url(x)}", "1:1"},
	{"charset", `@charset "utf-7";`, "1:1"},
	{"namespace", "@namespace x 'y';", "1:1"},
	{"supports", "@supports (display:grid){h2{gap:0}}", "1:1"},
	{"nested media", "@media (min-width:1px){@media (min-width:1px){h2{gap:0}}}", "1:24"},
	{"media of print", "@media print{h2{gap:0}}", "1:8"},
	{"other feature", "@media (hover: hover){h2{gap:0}}", "1:9"},
	{"wide feature", "@media (min-width: 9999rem){h2{gap:0}}", "1:20"},
	{"out of the style element", "</style><script>alert(1)</script>", "1:1"},
	{"escape", `h2{c\6flor:var(--ink)}`, "1:5"},
	{"NUL", "h2{gap:0}\x00", "1:10"},
	{"no UTF-8", "h2{gap:0}\xff", "1:10"},
	{"expression", "h2{font-size:expression(alert(1))}", "1:14"},
	{"behavior", "h2{behavior:none}", "1:4"},
	{"binding", "h2{-moz-binding:none}", "1:4"},
	{"hidden", "h1{display:none}", "1:4"},
	{"invisible", "h1{visibility:hidden}", "1:4"},
	{"transparent", "h1{opacity:0}", "1:4"},
	{"tiny", "h1{font-size:1px}", "1:4"},
	{"tiny by em", "main{font-size:.1em}", "1:6"},
	{"below the rest", "header{font-size:11px}", "1:8"},
	{"small around a place", "main section{font-size:.75rem}", "1:14"},
	{"large around a time", "main{font-size:2rem}", "1:6"},
	{"large sentence", ".lead{font-size:2rem}", "1:7"},
	{"large heading", "h1{font-size:4rem}", "1:4"},
	{"large number", "b{font-size:5rem}", "1:3"},
	{"wide around a place", "body{letter-spacing:.2em}", "1:6"},
	{"green for wrong", ".status{background:#fff;color:#0a0}", "1:9"},
	{"green role", "h2{color:var(--good)}", "1:10"},
	{"colour of a verdict", ".verdict b{color:var(--ink)}", "1:12"},
	{"colour of a check's line", ".lines > li{border:1px solid var(--ink)}", "1:13"},
	{"no hurry", ".urgent{border-color:var(--rule)}", "1:9"},
	{"small place", "b{font-size:.75rem}", "1:3"},
	{"elsewhere", "h1{position:fixed}", "1:4"},
	{"absolute", "h1{position:absolute}", "1:4"},
	{"moved", "h1{transform:translate(-9999px)}", "1:4"},
	{"pulled", "h1{margin-left:-9999px}", "1:4"},
	{"pushed", "header{margin-top:9999px}", "1:8"},
	{"pushed place", "h1{margin-top:8rem}", "1:4"},
	{"squeezed", "h1{padding:0 8rem}", "1:4"},
	{"squeezed body", "body{padding-left:20rem}", "1:6"},
	{"narrow", "body{max-width:1rem}", "1:6"},
	{"narrow main", "main{max-width:30rem}", "1:6"},
	{"indent", "h1{text-indent:-999px}", "1:4"},
	{"flat", "h1{line-height:0}", "1:4"},
	{"one on the other", "h1{letter-spacing:-1em}", "1:4"},
	{"words of a stranger", "h1::before{content:'You are number 1'}", "1:3"},
	{"content", "h1{content:'1'}", "1:4"},
	{"white on white", "h1{color:#fff;background:#fff}", "1:4"},
	{"white on anything", "h1{color:#fff}", "1:4"},
	{"no colour", "h1{color:transparent}", "1:4"},
	{"a little colour", "h1{color:#00000010}", "1:4"},
	{"black to white", "h1{background:linear-gradient(#000,#fff)}", "1:4"},
	{"red to cyan", "h1{background:linear-gradient(#f00,#0ff)}", "1:4"},
	{"soft on accent", "h2{background:var(--accent);color:var(--soft)}", "1:29"},
	{"on-accent on the page", "h2{color:var(--on-accent)}", "1:4"},
	{"own on the page", "h2{background:var(--page);color:#767676}", "1:27"},
	{"colour of a button", "button{color:var(--soft)}", "1:8"},
	{"colour of any button", ".choices :hover{color:var(--soft)}", "1:17"},
	{"two backgrounds", "h2{background:#fff;background-image:linear-gradient(#fff,#eee)}", "1:20"},
	{"shadow below text", "h1{box-shadow:0 0 0 99px #000}", "1:4"},
	{"shadow of a place", "h1{box-shadow:0 2px 2px #00000020}", "1:4"},
	{"dark shadow", "section{box-shadow:0 2px 2px #000}", "1:9"},
	{"inset", "section{box-shadow:inset 0 2px 2px #00000020}", "1:9"},
	{"important", "h2{gap:0!important}", "1:9"},
	{"variable", "h1{--ink:#fff}", "1:4"},
	{"string", "h2{font-family:'x'}", "1:16"},
	{"all elements", "*{gap:0}", "1:1"},
	{"html", "html{gap:0}", "1:1"},
	{"hidden elements", "[hidden]{gap:0}", "1:1"},
	{"id", "#line{gap:0}", "1:1"},
	{"not a class", ".unseen{gap:0}", "1:1"},
	{"pseudo-element", "h1:before{gap:0}", "1:3"},
	{"function of a selector", ":is(h1){gap:0}", "1:1"},
	{"body below", "main body{gap:0}", "1:6"},
	{"deep", "main section p b time{gap:0}", "1:18"},
	{"sibling", "h1+p{gap:0}", "1:3"},
	{"open", "h1{gap:0", "1:3"},
	{"open media", "@media (min-width:1px){h1{gap:0}", "1:23"},
	{"closed twice", "h1{gap:0}}", "1:10"},
	{"no value", "h1{gap:}", "1:8"},
	{"no colon", "h1{gap 0}", "1:8"},
	{"nested rule", "h1{a{gap:0}}", "1:4"},
	{"where it is", "h1 {\n  gap: 0;\n\t\u00e4\u00f6: 1; z-index: 9\n}", "3:2"},
	{"order", "header{flex-direction:row-reverse}", "1:8"},
	{"animation", "h1{animation:x 1s}", "1:4"},
	{"huge number", "h2{gap:1e99rem}", "1:8"},
	{"comment in the middle", "h2{background:u/**/rl(x)}", "1:20"},
	{"html comment", "<!-- h2{gap:0} -->", "1:1"},
	{"large", strings.Repeat("h2{gap:0}\n", 1+MaxSource/10), "1:1"},
	{"many", strings.Repeat("h2{gap:0}\n", maxRules+1), "301:1"},
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range refused {
		s, problems := Parse(c.source)
		if len(problems) == 0 {
			t.Errorf("%s: accepted as %s", c.name, s.Source())
			continue
		}
		p := problems[0]
		if where := fmt.Sprintf("%d:%d", p.Line, p.Column); where != c.where || p.Detail == "" || s != nil {
			t.Errorf("%s: %v, want at %s", c.name, problems, c.where)
		}
	}
}

// TestProblems checks that all problems are reported, not only the first one, up to a limit.
func TestProblems(t *testing.T) {
	t.Parallel()
	_, problems := Parse("h1 { display: none; gap: 0; z-index: 9 }\n@import 'x';\n.x, h2 { color: red }\nh2 {\n  font-size: 3px;\n}")
	var got []string
	for _, p := range problems {
		got = append(got, fmt.Sprintf("%d:%d", p.Line, p.Column))
	}
	if diff := cmp.Diff([]string{"1:6", "1:29", "2:1", "3:1", "5:3"}, got); diff != "" {
		t.Error(diff, problems)
	}
	if _, problems := Parse(strings.Repeat("h1{x:y}", 100)); len(problems) != maxProblems {
		t.Errorf("%d problems, want %d", len(problems), maxProblems)
	}
	if got := (Problem{2, 3, "no"}).String(); got != "line 2, column 3: no" {
		t.Error(got)
	}
}

// TestCSS checks that a rule with a background also sets the colours of everything on it.
func TestCSS(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		source string
		scheme Scheme
		want   string
	}{
		{"body{gap:0} main > h1,a{gap:0}", Any, "body{gap: 0}body main > h1,body a:where(:not(.button)){gap: 0}\n"},
		{"p,:hover{gap:0}", Any, "body p:where(:not(.status)),body :hover:where(:not(.status)){gap: 0}\n"},
		{"a.button{gap:0}", Any, "body a.button{gap: 0}\n"},
		{"h2{color:var(--soft);gap:0}", Any, "body h2{gap: 0;color:var(--soft)}\n"},
		{
			"main{background:#000;color:#ff0}", Any,
			"body main{--page:#000000;--ink:#ffff00;--soft:#a8a8a8;--card:#0a0a0a;--rule:#292929;--accent-ink:#ebebeb;--good:#458d63;--open:#9d7429;--bad:#c55a54;" +
				"background-color:#000000!important;background-image:none!important;color:var(--ink)!important}\n",
		},
		{"h2{background:var(--card);color:var(--soft)}", Any, "body h2{background-color:var(--card)!important;background-image:none!important;color:var(--soft)!important}\n"},
		{"@media (prefers-color-scheme:dark){h2{gap:0}} @media (prefers-color-scheme:light) and (min-width:1px){h2{gap:1px}}", Any, "@media (prefers-color-scheme: dark){body h2{gap: 0}}\n@media (prefers-color-scheme: light) and (min-width: 1px){body h2{gap: 1px}}\n"},
		{"@media (prefers-color-scheme:dark){h2{gap:0}} @media (prefers-color-scheme:light) and (min-width:1px){h2{gap:1px}}", Dark, "body h2{gap: 0}\n"},
		{"@media (prefers-color-scheme:dark){h2{gap:0}} @media (prefers-color-scheme:light) and (min-width:1px){h2{gap:1px}}", Light, "@media (min-width: 1px){body h2{gap: 1px}}\n"},
	} {
		s, problems := Parse(c.source)
		if len(problems) > 0 {
			t.Errorf("%s: %v", c.source, problems)
			continue
		}
		if diff := cmp.Diff(c.want, s.CSS(c.scheme)); diff != "" {
			t.Errorf("%s in %q:\n%s", c.source, c.scheme, diff)
		}
	}
	s, problems := Parse("header{background:var(--accent)} main{background:linear-gradient(#fff,#eee)}")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	css := s.CSS(Any)
	for _, want := range []string{"color:var(--on-accent)!important", "--soft:var(--on-accent)", "background-image:linear-gradient(#ffffff, #eeeeee)!important", "--page:#ffffff;"} {
		if !strings.Contains(css, want) {
			t.Errorf("no %s in %s", want, css)
		}
	}
}

var setColor = regexp.MustCompile(`--([a-z-]+):(#[0-9a-f]{6})`)

// TestGrounds checks that all text is readable on every accepted background, including the shades of a
// gradient.
func TestGrounds(t *testing.T) {
	t.Parallel()
	levels := []string{"00", "33", "66", "77", "99", "cc", "ff"}
	var colors []string
	for _, r := range levels {
		for _, g := range levels {
			for _, b := range levels {
				colors = append(colors, "#"+r+g+b)
			}
		}
	}
	accepted := 0
	for i, a := range colors {
		b := colors[(i*131+17)%len(colors)]
		for _, background := range []string{a, "linear-gradient(" + a + "," + b + ")"} {
			s, problems := Parse("main{background:" + background + "}")
			if len(problems) > 0 {
				if background == a {
					t.Errorf("%s is refused: %v", a, problems)
				}
				continue
			}
			accepted++
			checkGround(t, s.CSS(Any), a, map[bool]string{true: a, false: b}[background == a])
		}
	}
	if accepted < len(colors)+20 {
		t.Errorf("%d accepted: hardly a gradient among them", accepted)
	}
}

func checkGround(t *testing.T, css, a, b string) {
	t.Helper()
	from, err := ParseColor(a)
	if err != nil {
		t.Fatal(err)
	}
	to, err := ParseColor(b)
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]Color{}
	for _, m := range setColor.FindAllStringSubmatch(css, -1) {
		if set[m[1]], err = ParseColor(m[2]); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"ink", "soft", "accent-ink", "good", "open", "bad"} {
		for k := range 101 {
			if ratio := set[text].Contrast(from.Mix(to, float64(k)/100)); ratio < TextContrast-0.02 {
				t.Fatalf("%s contrasts by %.2f on the way from %s to %s: %s", text, ratio, a, b, css)
			}
		}
		if ratio := set[text].Contrast(set["card"]); ratio < TextContrast {
			t.Fatalf("%s contrasts by %.2f with the card: %s", text, ratio, css)
		}
	}
}

// TestHonest checks which selectors may select elements that show the place, times or the check.
func TestHonest(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]bool{
		"h1": true, "p": true, "main > p": true, ".lead": true, "p.lead": true, ".drawn b": true, "section > p": true, ":hover": true, "main :first-child": true,
		"footer p": false, "header p": false, ".intro p": false, ".headline": false, "h2": false, "main": false, "body": false, "a": false, "nav li": false, ".small": true,
	} {
		p := &parser{source: source}
		if !p.tokens() {
			t.Fatal(p.problems)
		}
		s, ok := p.selector()
		if !ok {
			t.Fatalf("%s: %v", source, p.problems)
		}
		if got := s.honest(); got != want && source != ".small" {
			t.Errorf("%s is honest: %t", source, got)
		}
	}
}

// TestProperties checks that every property accepts some values and refuses many.
func TestProperties(t *testing.T) {
	t.Parallel()
	samples := []string{
		"0", "1px", "1rem", "24rem", "1em", "0.1em", "50%", "1", "400", "normal", "none", "start", "auto", "serif", "solid", "row", "uppercase", "from-font",
		"#abcdef", "var(--ink)", "linear-gradient(#fff, #eee)", "0 1px 1px #00000010",
	}
	for _, p := range Properties {
		selector := "h2"
		if p.Only != nil {
			selector = p.Only[0]
		}
		var taken []string
		for _, sample := range samples {
			source := selector + "{" + p.Name + ":" + sample + "}"
			if p.Name == "color" {
				source = selector + "{background:#000;color:" + sample + "}"
			}
			if _, problems := Parse(source); len(problems) == 0 {
				taken = append(taken, sample)
			}
		}
		if len(taken) == 0 || len(taken) > 6 {
			t.Errorf("%s takes %v", p.Name, taken)
		}
		if p.Values == "" || slices.Contains(taken, "") {
			t.Errorf("%s is not described", p.Name)
		}
	}
}

// forbiddenOut lists what the output must never contain.
var forbiddenOut = regexp.MustCompile(`(?i)url\(|@import|@font-face|expression|</|\\|behavior|-moz-binding|javascript|display|visibility|position|opacity|[;{ ]content\s*:|['"<]`)

func FuzzParse(f *testing.F) {
	for _, c := range refused {
		f.Add(c.source)
	}
	f.Add("h1,.lead > b{margin:0 auto;color:var(--ink)}@media (min-width:1px) and (prefers-color-scheme:dark){a:hover{background:linear-gradient(45deg,#000,#111 5%);color:#fff}}")
	f.Fuzz(func(t *testing.T, source string) {
		s, problems := Parse(source)
		if (s == nil) != (len(problems) > 0) {
			t.Fatalf("sheet %v with problems %v", s, problems)
		}
		for _, p := range problems {
			if p.Line < 1 || p.Column < 1 || p.Detail == "" {
				t.Errorf("problem %+v", p)
			}
		}
		if s == nil {
			return
		}
		again, problems := Parse(s.Source())
		if len(problems) > 0 || again.Source() != s.Source() || again.CSS(Any) != s.CSS(Any) {
			t.Errorf("read again, with %v:\n%s\n%s", problems, s.Source(), again.Source())
		}
		for _, scheme := range []Scheme{Any, Light, Dark} {
			css := s.CSS(scheme)
			if bad := forbiddenOut.FindString(css); bad != "" {
				t.Errorf("%q in %s", bad, css)
			}
			if strings.Count(css, "{") != strings.Count(css, "}") {
				t.Errorf("braces of %s", css)
			}
		}
	})
}
