package rooms

import (
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
)

// FuzzRoomForm saves any input, and shows it unchanged.
func FuzzRoomForm(f *testing.F) {
	f.Add("sale", "Sale", "2130-05-01T12:00", "1 min", "60", "https://shop.example.com")
	f.Add("", "\x00", "never", "x", "-0", "\n")
	f.Add("sale", "Sale", "", "", "1", "")
	f.Fuzz(func(t *testing.T, slug, title, moment, length, count, targets string) {
		form := readRoomForm(url.Values{
			"slug": {slug}, "title": {title}, "opens": {moment}, "closes": {moment}, "windows[0].length": {length}, "windows[1].length": {length}, "windows[1].from": {moment},
			"outflow.per_minute": {count}, "max_waiting": {count}, "claim": {length}, "targets": {targets}, "signed_return": {count}, "time_zone": {title},
		})
		config, err := form.config(nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = room.ParseConfig(config) // must not panic
		form.outline()
		shown := newRoomForm(config, "")
		again, err := shown.config(nil)
		if err != nil || string(again) != string(config) {
			t.Errorf("%s becomes %s, %v", config, again, err)
		}
		for _, name := range []string{"slug", "title", "signed_return", "time_zone"} {
			if form.Value(name) != shown.Value(name) {
				t.Errorf("%s %q becomes %q", name, form.Value(name), shown.Value(name))
			}
		}
	})
}

func TestByLine(t *testing.T) {
	t.Parallel()
	got := byLine(invalid.List{
		{Field: "title", Detail: "is too long"}, {Field: "targets[0]", Detail: "must be a URL"}, {Field: "targets[2]", Detail: "is too long"},
		{Field: "targets[11]", Detail: "must be a URL"}, {Field: "targets", Detail: "must be at most 20"}, {Field: "methods[1].key", Detail: "must be sound"},
	}, true)
	want := invalid.List{
		{Field: "title", Detail: "is too long"}, {Field: "targets[0]", Detail: "lines 1, 12 must be a URL"}, {Field: "targets[2]", Detail: "line 3 is too long"},
		{Field: "targets", Detail: "must be at most 20"}, {Field: "methods[1].key", Detail: "line 2 key must be sound"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestCapacity calculates an outflow, and uses it.
func TestCapacity(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		form capacityForm
		want string
	}{
		{capacityForm{"500", "4 min", "20,000", "10"}, "Let in 125 per minute, with at most 500 at once. Everyone is through after about 2 h 40 min, and about 22,223 have to be called for that."},
		{capacityForm{"100", "90 s", "", ""}, "Let in 66 per minute, with at most 100 at once."},
		{capacityForm{"1", "1 h", "10", "x"}, "Let in 1 per minute, with at most 1 at once. Everyone is through after about 10 min, and about 10 have to be called for that."},
		{capacityForm{"4000000000", "1 ms", "", ""}, "Let in 10,000,000 per minute, with at most 4,000,000,000 at once."},
		{capacityForm{"0", "4 min", "", ""}, ""},
		{capacityForm{"500", "long", "", ""}, ""},
		{capacityForm{"500", "0 s", "", ""}, ""},
		{capacityForm{}, ""},
	} {
		got := ""
		if f, ok := test.form.flow(); ok {
			got = f.Words()
		}
		if got != test.want {
			t.Errorf("%+v: %s", test.form, got)
		}
	}
}

// TestPresetForms checks that every preset has an outline and a drawing.
func TestPresetForms(t *testing.T) {
	t.Parallel()
	for _, p := range presets {
		form := p.form(time.Now(), "none")
		if len(form.outline()) < 3 && !p.IsNet() { // which begins when it is published
			t.Errorf("%s: outline %q", p.Name, form.outline())
		}
		if bars := p.Bars(); len(bars) == 0 || bars[len(bars)-1].X+bars[len(bars)-1].Width > 100.1 {
			t.Errorf("%s: drawing %v", p.Name, bars)
		}
	}
}
