package room

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room/setting"
)

// TestSettingsTable: the configuration and its changes have exactly the settings of the table.
func TestSettingsTable(t *testing.T) {
	t.Parallel()
	var all, free []string
	for _, s := range setting.All() {
		all = append(all, s.Name)
		if s.Change == setting.Free && s.Name != "title" { // a separate column in the database
			free = append(free, s.Name)
		}
	}
	config := slices.Concat(jsonNames(reflect.TypeFor[Config](), ""), jsonNames(reflect.TypeFor[Outflow](), "outflow."))
	config = slices.DeleteFunc(config, func(name string) bool { return name == "outflow" })
	slices.Sort(all)
	slices.Sort(config)
	if diff := cmp.Diff(all, config); diff != "" {
		t.Errorf("settings (-table +Config):\n%s", diff)
	}
	for _, of := range []reflect.Type{reflect.TypeFor[Settings](), reflect.TypeFor[SettingsChange]()} {
		names := jsonNames(of, "")
		slices.Sort(names)
		slices.Sort(free)
		if diff := cmp.Diff(free, names); diff != "" {
			t.Errorf("settings that change freely (-table +%s):\n%s", of, diff)
		}
	}
}

// jsonNames returns the names of a struct's JSON members.
func jsonNames(of reflect.Type, prefix string) (names []string) {
	for _, f := range reflect.VisibleFields(of) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, prefix+name)
		}
	}
	return names
}

// TestBoundsAgree: the bounds of the table are those of the rules.
func TestBoundsAgree(t *testing.T) {
	t.Parallel()
	for name, bounds := range map[string][2]string{ // just outside
		"claim":              {`"999ms"`, `"24h0m0.001s"`},
		"session":            {`"999ms"`, `"168h0m0.001s"`},
		"outflow.per_minute": {"0", "10000001"},
		"windows":            {`[{"length":"99ms"}]`, `[{"length":"744h0m0.001s"}]`},
	} {
		for _, value := range bounds {
			text := roomWith(t, name, value)
			if _, err := ParseConfig(text); len(invalid.Problems(err)) != 1 {
				t.Errorf("%s: %v", text, err)
			}
			var c Config
			if err := json.Unmarshal(text, &c); err != nil {
				t.Fatal(err)
			}
			if err := c.withoutDefaultPace().check(moment); len(invalid.Problems(err)) != 1 {
				t.Errorf("%s: the rules find %v", text, err)
			}
		}
	}
	for _, s := range setting.All() {
		var edges []string
		switch k := s.Kind.(type) {
		case setting.Duration:
			if s.Name != "slots" { // depends on the first window
				edges = []string{quoted(k.Min), quoted(k.Max)}
			}
		case setting.Number:
			if s.Name != "quorum" { // depends on the server's witnesses
				edges = []string{fmt.Sprint(k.Min), fmt.Sprint(k.Max)}
			}
		}
		for _, value := range edges {
			text := roomWith(t, s.Name, value)
			c, err := ParseConfig(text)
			if err == nil {
				err = c.check(moment)
			}
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// withoutDefaultPace replaces a pace of 0, which stands for the default, by another invalid one.
func (c Config) withoutDefaultPace() Config {
	if c.Outflow.PerMinute == 0 && c.Claim == nil && c.Session == nil && c.Windows == nil {
		c.Outflow.PerMinute = ^uint32(0)
	}
	return c
}

func quoted(d time.Duration) string { return `"` + d.String() + `"` }

// roomWith returns the JSON of a room with one more setting.
func roomWith(t *testing.T, name, value string) []byte {
	t.Helper()
	members := map[string]any{"slug": "a"}
	setting.Put(members, name, json.RawMessage(value))
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestSettingsChange: a change leaves the other settings as they are.
func TestSettingsChange(t *testing.T) {
	t.Parallel()
	limit, zone := uint32(0), "UTC"
	c := SettingsChange{MaxWaiting: &limit, TimeZone: &zone}
	was := Settings{Targets: []string{"https://a.example"}, MaxWaiting: 7, SignedReturn: true}
	want := Settings{Targets: was.Targets, TimeZone: zone, SignedReturn: true}
	if diff := cmp.Diff(want, c.on(was)); diff != "" {
		t.Error(diff)
	}
}
