package rules

import (
	"strings"
	"testing"
	"time"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	s := mustParse(t, `{"version":1,"hosts":["shop.example.com","www.shop.example.com"],`+oneRoom+`,"rules":[
		{"name":"exact","when":{"path":{"equals":"/tickets"},"host":{"equals":"shop.example.com"}},"action":"queue sale"},
		{"name":"post","when":{"path":{"prefix":"/pay"},"method":{"any":[{"equals":"GET"},{"equals":"POST"}]}},"action":"queue sale"},
		{"name":"tight","when":{"path":{"any":[{"prefix":"/gate"},{"glob":"/gate.*"},{"glob":"/*/gate"}]}},"action":"queue sale"},
		{"name":"rest","when":{"path":{"prefix":"/all"}},"action":"block"}]}`)
	for _, c := range []struct {
		url     string
		outcome Outcome
		rule    string
		warns   []string // parts of warnings
		silent  []string // texts that no warning contains
	}{
		{"https://shop.example.com/tickets", Queue, "exact",
			[]string{"https://www.shop.example.com/tickets", "/tickets/index.html", "/tickets.json", "/tickets/x.css", "/de/tickets"},
			[]string{"TICKETS", "with a last slash", "http://shop"}},
		{"https://shop.example.com/pay?x=1", Queue, "post", []string{"tests the method"}, []string{"x.css", "without query"}},
		{"https://shop.example.com/gate", Queue, "tight", nil, []string{"not protected"}},
		{"https://shop.example.com/free", Bypass, NoRule, []string{"no rule matches it: all visitors"}, nil},
		{"https://shop.example.com/app.css", Bypass, "default:assets", nil, []string{"all visitors"}},
		{"https://shop.example.com/all", Block, "rest", nil, []string{"not protected"}},
		{"https://other.example.com/tickets", Block, WrongHost, nil, nil},
	} {
		list, err := Check(s, []string{c.url}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(list[0].Warnings, "\n")
		if d := list[0].Decision; d.Outcome != c.outcome || d.Rule != c.rule {
			t.Errorf("%s: %+v", c.url, d)
		}
		for _, want := range c.warns {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no warning says %q:\n%s", c.url, want, text)
			}
		}
		for _, not := range c.silent {
			if strings.Contains(text, not) {
				t.Errorf("%s: a warning says %q:\n%s", c.url, not, text)
			}
		}
	}
	for _, bad := range []string{"", "/tickets", "ftp://a/b", "https://", "https://a/%zz"} {
		if _, err := Check(s, []string{bad}, time.Time{}); err == nil {
			t.Errorf("%q is taken for a URL", bad)
		}
	}
}

// TestCheckWide checks which addresses the default rules exempt when a whole site waits.
func TestCheckWide(t *testing.T) {
	t.Parallel()
	s := mustParse(t, `{"version":1,`+oneRoom+`,"rules":[{"name":"everything","action":"queue sale"}]}`)
	list, err := Check(s, []string{"https://shop.example.com/tickets"}, time.Time{})
	if err != nil || len(list[0].Warnings) != 1 || !strings.Contains(list[0].Warnings[0], `/tickets/x.css is not protected (with a file extension): rule "default:assets"`) {
		t.Errorf("%v, %v", list, err)
	}
	off := mustParse(t, `{"version":1,"rooms":{"sale":{"url":"https://queue.example.com/r/sale","mode":"off"}},"rules":[{"name":"everything","action":"queue sale"}]}`)
	list, err = Check(off, []string{"https://shop.example.com/tickets"}, time.Time{})
	if err != nil || len(list[0].Warnings) != 1 || !strings.Contains(list[0].Warnings[0], "room sale is off") {
		t.Errorf("%v, %v", list, err)
	}
}

// TestDecideStrange: a path with many readings must not cost many times its length, because any
// client can send it. It is split once for each way of splitting it, not for each reading.
func TestDecideStrange(t *testing.T) {
	s := mustParse(t, `{"version":1,`+oneRoom+`,"rules":[{"name":"t","when":{"path":{"prefix":"/tickets"}},"action":"queue sale"}]}`)
	r := &Request{Method: "GET", Host: "shop.example.com", Target: "//a;%2f/./" + strings.Repeat("a/", 1000)}
	const most = 600 // it would be 1,600 otherwise
	if got := testing.AllocsPerRun(5, func() { s.Decide(r, time.Time{}) }); got > most {
		t.Errorf("%v allocations, want at most %d", got, most)
	}
}

func BenchmarkDecide(b *testing.B) {
	s := mustParse(b, `{"version":1,`+oneRoom+`,"rules":[{"name":"t","when":{"path":{"prefix":"/tickets"}},"action":"queue sale"},{"name":"all","action":"queue sale"}]}`)
	for name, target := range map[string]string{"plain": "/shop/7?x=1", "odd": "/shop/..;/x%2f../a"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			r := &Request{Method: "GET", Host: "shop.example.com", Target: target}
			for b.Loop() {
				s.Decide(r, time.Time{})
			}
		})
	}
}
