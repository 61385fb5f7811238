package apply

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/internal/wire"
)

// TestRead reads files of several forms.
func TestRead(t *testing.T) {
	t.Parallel()
	list, err := Read(strings.NewReader(`# two rooms
slug: one
title: 2030-05-01
opens: 2030-05-01T11:30:00Z
host: tickets.example.com
brand: {texts: {en: &words {headline: Hello}, de: *words}}
---
---
{"slug": "two", "outflow": {"max_active": 7}, "claim": "3m"}
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].Config.Slug != "one" || list[0].Config.Title != "2030-05-01" ||
		list[0].Host != "tickets.example.com" ||
		list[0].Config.Opens.Year() != 2030 || list[0].Config.Brand.Texts["de"].Headline != "Hello" ||
		list[1].Config.Outflow.MaxActive != 7 || list[1].Line != 9 {
		t.Errorf("read %+v", list)
	}
	if list[1].Sets("outflow.per_minute") || !list[1].Sets("outflow.max_active") || list[0].Sets("outflow") {
		t.Errorf("lines %v", list[1].lines)
	}
	var sent map[string]any
	if err := json.Unmarshal(list[0].JSON, &sent); err != nil || sent["host"] != "tickets.example.com" ||
		sent["title"] != "2030-05-01" {
		t.Errorf("sent %s, %v", list[0].JSON, err)
	}
}

// TestMistakes: Read reports all mistakes with their lines.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"slug: sale\ncolour: red\noutflow:\n  per_minute: fast\n":     "line 2: colour: is not known|line 4: outflow.per_minute: must be a whole number",
		"slug: sale\nwindows:\n- length: 1m\n- length: x\n  width: 3": "line 4: windows[1].length: must be a duration|line 5: windows[1].width: is not known",
		"slug: sale\nslug: other":                                     "already defined at line 1|slug: is given twice",
		"slug: sale\n---\nslug: sale":                                 "line 3: slug: room sale is already on line 1",
		"title: no name":                                              "line 1: slug: is required",
		"- slug: sale":                                                "line 1: the room: must be a mapping",
		"slug: [":                                                     "neither YAML nor JSON",
		"":                                                            "it contains no room",
		"slug: sale\nhost: 7":                                         "line 2: host: must be a string",
		"slug: sale\nsigned_return: 1":                                "line 2: signed_return: must be true or false",
		"slug: sale\nmax_waiting: 0x10":                               "line 2: max_waiting: cannot be \"0x10\"",
		"slug: sale\nmax_waiting: .inf":                               "line 2: max_waiting: cannot be \".inf\"",
		"slug: sale\ntitle: !!binary aGk=":                            "line 2: title: cannot be",
		`{"slug": "sale", "windows": [{"length": "1m", "from": "noon"}]}`: "line 1: windows[0].from: must be an RFC 3339 time",
	} {
		list, err := Read(strings.NewReader(text))
		if err == nil {
			t.Errorf("%q is read: %+v", text, list)
			continue
		}
		if !errors.Is(err, ErrSyntax) && !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v, want ErrSyntax or ErrInvalid", text, err)
		}
		found := false
		for alternative := range strings.SplitSeq(want, "|") {
			found = found || strings.Contains(err.Error(), alternative)
		}
		all := strings.Count(want, "line") < 2
		for part := range strings.SplitSeq(want, "|") {
			all = all || strings.Contains(err.Error(), part)
		}
		if !found || !all {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestBomb: aliases cannot expand a file without limit.
func TestBomb(t *testing.T) {
	t.Parallel()
	text := "slug: sale\na: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i < 'k'; i++ {
		text += string(i) + ": &" + string(i) + " [" + strings.Repeat("*"+string(i-1)+",", 10) + "]\n"
	}
	if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("%.200v", err)
	}
	if _, err := Read(strings.NewReader("slug: &a [*a]")); err == nil {
		t.Error("read a list that contains itself")
	}
}

// sale is a room in a server's response.
const sale = `{"slug":"sale","title":"Sale","opens":"2030-05-01T11:30:00Z","starts":"2030-05-01T12:00:00Z",
	"windows":[{"from":"2030-05-01T11:30:00Z","length":"30m0s"},{"from":"2030-05-01T12:00:00Z","length":"1m0s"}],
	"outflow":{"per_minute":60,"max_active":0},"claim":"5m0s","session":"15m0s","beacon":"none","targets":["https://shop.example.com"],"host":null,"phase":"upcoming"}`

// TestCompare: Compare finds all differences, and which ones are allowed.
func TestCompare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text      string
		action    Action
		changes   string // ~ allowed, ! not allowed
		amendment string
	}{
		{"slug: sale", Keep, "", `{}`},
		{"{slug: sale, title: Sale, opens: 2030-05-01T13:30:00+02:00, claim: 300s, beacon: none, outflow: {per_minute: 60}, targets: ['https://shop.example.com']}", Keep, "", `{}`},
		{"{slug: sale, opens: null, host: null, host: ''}", Refuse, "", ``},
		{"{slug: sale, title: Big sale, outflow: {max_active: 9}}", Change,
			"~title: Sale -> Big sale ~outflow.max_active: 0 -> 9", `{"outflow":{"max_active":9},"title":"Big sale"}`},
		{"{slug: sale, claim: 3m, outflow: {per_minute: 90}}", Refuse,
			"~outflow.per_minute: 60 -> 90 !claim: 5m0s -> 3m0s", `{"outflow":{"per_minute":90}}`},
		{"{slug: sale, opens: 2030-05-01T11:00:00Z, host: a.example.com}", Refuse,
			"!host: none -> a.example.com !opens: 2030-05-01T11:30:00Z -> 2030-05-01T11:00:00Z", `{}`},
		{"{slug: sale, closes: 2030-05-02T00:00:00Z}", Change, "~closes: none -> 2030-05-02T00:00:00Z",
			`{"closes":"2030-05-02T00:00:00Z"}`},
		{"{slug: sale, targets: []}", Change, `~targets: ["https://shop.example.com"] -> []`, `{"targets":[]}`},
		{"{slug: sale, signed_return: false}", Keep, "", `{}`},
		{"{slug: sale, signed_return: true}", Change, "~signed_return: false -> true", `{"signed_return":true}`},
		{"{slug: sale, brand: {color: '#112233'}, max_waiting: 5}", Change, "~max_waiting: 0 -> 5 ~brand: differs",
			`{"brand":{"color":"#112233"},"max_waiting":5}`},
		{"{slug: sale, windows: [{length: 30m}, {from: 2030-05-01T12:00:00Z, length: 1m}, {from: 2030-05-01T12:10:00Z, length: 60s}]}", Keep, "", `{}`},
		{
			"{slug: sale, windows: [{length: 30m}, {from: 2030-05-01T12:00:00Z, length: 5m}]}", Change,
			"~windows: 30m0s from 2030-05-01T11:30:00Z, 1m0s from 2030-05-01T12:00:00Z -> 30m0s from 2030-05-01T11:30:00Z, 5m0s from 2030-05-01T12:00:00Z",
			`{"windows":[{"from":"2030-05-01T12:00:00Z","length":"5m0s"}]}`,
		},
		{
			"{slug: sale, windows: [{length: 30m}]}", Change,
			"~windows: 30m0s from 2030-05-01T11:30:00Z, 1m0s from 2030-05-01T12:00:00Z -> 30m0s from 2030-05-01T11:30:00Z",
			`{"windows":[{"from":"2030-05-01T12:00:00Z","length":"30m0s"}]}`,
		},
	} {
		list, err := Read(strings.NewReader(c.text))
		if c.amendment == "" {
			if err == nil {
				t.Errorf("%s is read", c.text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		var p wire.Room
		if err := json.Unmarshal([]byte(sale), &p); err != nil {
			t.Fatal(err)
		}
		s, err := Compare(&list[0], p, `"tag"`)
		if err != nil {
			t.Fatal(err)
		}
		words := []string{}
		for _, d := range s.Changes {
			mark := "~"
			if !d.Allowed {
				mark = "!"
			}
			words = append(words, mark+d.Words())
		}
		if got := strings.Join(words, " "); s.Action != c.action || got != c.changes {
			t.Errorf("%s: %s, %s", c.text, s.Action, cmp.Diff(c.changes, got))
		}
		if diff := cmp.Diff(c.amendment, string(s.Amendment)); diff != "" {
			t.Errorf("%s: amendment\n%s", c.text, diff)
		}
	}
}

// TestMissing: an invalid configuration of a missing room is an error.
func TestMissing(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	list, err := Read(strings.NewReader("slug: sale\nopens: 2030-05-01T12:00:00Z\nstarts: 2030-05-01T11:00:00Z\n---\nslug: fine"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Missing(&list[0], now); !errors.Is(err, ErrInvalid) ||
		!strings.Contains(err.Error(), "line 3: starts: ") {
		t.Errorf("%v", err)
	}
	if s, err := Missing(&list[1], now); err != nil || s.Action != Create {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestEnded: a room that has ended cannot change.
func TestEnded(t *testing.T) {
	t.Parallel()
	list, err := Read(strings.NewReader("{slug: sale, title: Other}"))
	if err != nil {
		t.Fatal(err)
	}
	var p wire.Room
	if err := json.Unmarshal([]byte(strings.Replace(sale, "upcoming", "ended", 1)), &p); err != nil {
		t.Fatal(err)
	}
	if s, err := Compare(&list[0], p, ""); err != nil || s.Action != Refuse || !s.Ended {
		t.Errorf("%+v, %v", s, err)
	}
	list[0].lines = lines{}
	if s, err := Compare(&list[0], p, ""); err != nil || s.Action != Keep {
		t.Errorf("a file that sets nothing: %+v, %v", s, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("slug: sale\ntitle: Sale\nwindows: [{length: 1m}]")
	f.Add(`{"slug":"sale","outflow":{"per_minute":5}}`)
	f.Add("a: &a [1]\nb: *a\n---\n? [x]\n: 1")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, w := range list {
			if !json.Valid(w.JSON) || w.Config.Slug == "" || w.Line < 1 {
				t.Errorf("%q: %+v", text, w)
			}
			var p wire.Room
			if err := json.Unmarshal(w.JSON, &p); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if s, err := Compare(&w, p, ""); err == nil && s.Action == Refuse && p.Opens != nil && p.Starts != nil {
				t.Errorf("%q differs from itself: %+v", text, s)
			}
		}
	})
}
