package rules

import (
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"
)

// aliasSteps are spellings of a path that some origins treat as the same path.
var aliasSteps = []func(*rand.Rand, string) string{
	func(r *rand.Rand, p string) string { return mapByte(r, p, "abcdefghijklmnopqrstuvwxyz", flipCase) },
	func(r *rand.Rand, p string) string {
		return mapByte(r, p, "abcdefghijklmnopqrstuvwxyzABCXYZ-0123456789", encode)
	},
	func(r *rand.Rand, p string) string {
		return mapByte(r, p, "/", func(byte) string { return "//" })
	},
	func(r *rand.Rand, p string) string {
		return p[:1] + mapByte(r, p[1:], "/", func(byte) string { return "%2F" })
	},
	func(r *rand.Rand, p string) string {
		return p[:1] + mapByte(r, p[1:], "/", func(byte) string { return `\` })
	},
	func(r *rand.Rand, p string) string {
		return p[:1] + mapByte(r, p[1:], "/", func(byte) string { return "%5c" })
	},
	func(r *rand.Rand, p string) string { return mapByte(r, p, "/", func(byte) string { return "/./" }) },
	func(r *rand.Rand, p string) string { return mapByte(r, p, "/", func(byte) string { return "/%2e/" }) },
	func(r *rand.Rand, p string) string {
		return mapByte(r, p, "/", func(byte) string { return "/pub/../" })
	},
	func(r *rand.Rand, p string) string {
		return mapByte(r, p, "/", func(byte) string { return "/pub%2F%2e%2e/" })
	},
	func(r *rand.Rand, p string) string {
		return mapByte(r, p, "/", func(byte) string { return "/pub/..;x=y/" })
	},
	func(_ *rand.Rand, p string) string { return p + "/" },
	func(_ *rand.Rand, p string) string { return p + ";jsessionid=1" },
	func(_ *rand.Rand, p string) string { return "/x/.." + p },
	func(_ *rand.Rand, p string) string { return p + "%20" },
	func(_ *rand.Rand, p string) string {
		if strings.HasSuffix(p, "7") { // dots after dots are a different name
			p += "%2e."
		}
		return p
	},
	func(r *rand.Rand, p string) string {
		return p[:1] + mapByte(r, p[1:], "/", func(byte) string { return "%20/" })
	},
	func(r *rand.Rand, p string) string {
		return mapByte(r, p, "tickesrow-7/", func(c byte) string { return "%25" + encode(c)[1:] })
	},
	func(r *rand.Rand, p string) string {
		return mapByte(r, p, "tickesrow-7", func(c byte) string { return string(rune(c) - '!' + '！') })
	},
	func(r *rand.Rand, p string) string {
		return mapByte(r, p, "k", func(byte) string { return "%E2%84%AA" })
	},
	func(r *rand.Rand, p string) string {
		return mapByte(r, p, "eio", func(c byte) string { return string(c) + "\u0301" })
	},
	func(_ *rand.Rand, p string) string { return p + "/favicon.ico/.." },
}

// flipCase and the following functions spell one character differently.
func flipCase(c byte) string { return string(rune(c ^ 0x20)) }

func encode(c byte) string {
	const digits = "0123456789ABCDEF"
	return "%" + string(digits[c>>4]) + string(digits[c&15])
}

// mapByte spells one of the given characters differently, unless it is part of an escape.
func mapByte(r *rand.Rand, p, among string, spell func(byte) string) string {
	var at []int
	for i := range len(p) {
		inEscape := i > 0 && p[i-1] == '%' || i > 1 && p[i-2] == '%'
		if strings.IndexByte(among, p[i]) >= 0 && !inEscape {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return p
	}
	i := at[r.IntN(len(at))]
	return p[:i] + spell(p[i]) + p[i+1:]
}

// FuzzAlias spells protected paths differently, and checks that all spellings wait.
func FuzzAlias(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed, uint8(seed%9))
	}
	sites := []*Site{
		mustParse(f, `{"version":1,`+oneRoom+`,"rules":[{"name":"pub","when":{"path":{"prefix":"/pub"}},"action":"bypass"},{"name":"t","when":{"path":{"prefix":"/tickets/row-7"}},"action":"queue sale"}]}`),
		mustParse(f, `{"version":1,`+oneRoom+`,"rules":[{"name":"t","when":{"path":{"equals":"/tickets/row-7"}},"action":"queue sale"}]}`),
		mustParse(f, `{"version":1,`+oneRoom+`,"rules":[{"name":"pub","when":{"path":{"prefix":"/pub"}},"action":"bypass"},{"name":"t","action":"queue sale"}]}`),
	}
	f.Fuzz(func(t *testing.T, seed uint64, steps uint8) {
		r := rand.New(rand.NewPCG(seed, 1))
		path := "/tickets/row-7"
		for range steps % 12 {
			path = aliasSteps[r.IntN(len(aliasSteps))](r, path)
		}
		for i, s := range sites {
			for _, target := range []string{path, path + "?a=/favicon.ico", "HTTPS://shop.example.com" + path} {
				if d := s.Decide(&Request{Method: "GET", Host: "shop.example.com", Target: target}, time.Time{}); d.Outcome == Bypass {
					t.Errorf("site %d lets %q through: %+v", i, target, d)
				}
			}
		}
	})
}

// FuzzDecide checks that the decision for an origin's reading is never stricter than ours.
func FuzzDecide(f *testing.F) {
	for _, c := range readVectors(f).Cases {
		f.Add(c.Request.Host, c.Request.Target)
	}
	s := mustParse(f, `{"version":1,`+oneRoom+`,"rules":[{"name":"t","when":{"path":{"prefix":"/t"}},"action":"queue sale"},{"name":"q","when":{"query":{"a":{"not":{"glob":"*1*"}}}},"action":"bypass"}]}`)
	f.Fuzz(func(t *testing.T, host, target string) {
		d := s.Decide(&Request{Method: "GET", Host: host, Target: target}, time.Time{})
		u, err := url.ParseRequestURI(target)
		if err != nil || u.Path == "" || u.Path[0] != '/' || d.Outcome != Bypass {
			return
		}
		clean := lower(u.JoinPath().Path) // dots and slashes resolved by the standard library
		if isBelow(strings.TrimRight(clean, "/"), "/t") {
			t.Errorf("%q passes, and net/url reads %q", target, clean)
		}
	})
}

// FuzzParse checks that the parser never panics, and that parsed rules can decide.
func FuzzParse(f *testing.F) {
	for _, d := range documents {
		f.Add([]byte(d.text))
	}
	for _, text := range readVectors(f).Sites {
		f.Add([]byte(text))
	}
	for _, d := range readVectors(f).Documents {
		f.Add([]byte(d.Text))
	}
	f.Fuzz(func(_ *testing.T, text []byte) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		s.Decide(&Request{Method: "GET", Host: "a", Target: "/a/..;/b?c=d"}, time.Time{})
	})
}
