package room

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/room/projection"
	"github.com/proofline/proofline/room/setting"
)

// moment is the creation time of rooms in tests without a database.
var moment = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)

// fieldsOf returns the fields that an error names.
func fieldsOf(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	wrong, ok := errors.AsType[*invalid.Error](err)
	if !ok || len(wrong.Problems) == 0 {
		t.Fatalf("error %v, want invalid.Error", err)
	}
	var list []string
	for _, p := range wrong.Problems {
		if p.Detail == "" || !strings.Contains(err.Error(), p.Detail) {
			t.Errorf("problem %+v is not in %q", p, err)
		}
		list = append(list, p.Field)
	}
	return list
}

// TestParseConfig tries every kind of wrong value, and checks that its field is named.
func TestParseConfig(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		json   string
		fields []string
	}{
		{`{"slug":"a"}`, nil},
		{`{"slug":"a","closes":null,"opens":null,"claim":null,"windows":null,"outflow":null,"title":null,"beacon":null}`, nil},
		{`{"slug":"a","outflow":{"per_minute":null}}`, nil},
		{``, []string{""}},
		{`null`, []string{""}},
		{`[]`, []string{""}},
		{`"slug"`, []string{""}},
		{`{"slug":"a"}{}`, []string{""}},
		{`{"slug":"a"`, []string{""}},
		{`{"slug":7}`, []string{"slug"}},
		{`{"slug":"a","Slug":"b","other":1}`, []string{"Slug", "other"}},
		{`{"slug":"a","slug":"a"}`, []string{"slug"}},
		{`{"slug":"a","\u0073lug":"b","other":1}`, []string{"slug", "other"}},
		{`{"slug":"a","outflow":{"per_minute":1,"max_active":1,"per_minute":2}}`, []string{"outflow.per_minute"}},
		{`{"slug":"a","windows":[{"length":"1m"},{"from":"2030-05-01T12:10:00Z","length":"1m","length":"2m"}]}`, []string{"windows[1].length"}},
		{`{"slug":"a","targets":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`, []string{"targets" + strings.Repeat("[0]", 31), "targets"}},
		{`{"slug":"a","title":[]}`, []string{"title"}},
		{`{"slug":"a","opens":"tomorrow"}`, []string{"opens"}},
		{`{"slug":"a","opens":"2030-05-01 12:00:00Z"}`, []string{"opens"}},
		{`{"slug":"a","starts":1}`, []string{"starts"}},
		{`{"slug":"a","closes":"2030-13-01T12:00:00Z"}`, []string{"closes"}},
		{`{"slug":"a","claim":60}`, []string{"claim"}},
		{`{"slug":"a","claim":"60"}`, []string{"claim"}},
		{`{"slug":"a","claim":"1.5ms"}`, []string{"claim"}},
		{`{"slug":"a","session":"1 h"}`, []string{"session"}},
		{`{"slug":"a","session":""}`, []string{"session"}},
		{`{"slug":"a","beacon":false}`, []string{"beacon"}},
		{`{"slug":"a","windows":{}}`, []string{"windows"}},
		{`{"slug":"a","windows":[7,{"length":"1m"}]}`, []string{"windows[0]", "windows[1].from"}},
		{`{"slug":"a","windows":[null]}`, []string{"windows[0]"}},
		{`{"slug":"a","windows":[{"length":"1x"}]}`, []string{"windows[0].length"}},
		{`{"slug":"a","windows":[{"from":"now","length":"1m","to":1}]}`, []string{"windows[0].to", "windows[0].from"}},
		{`{"slug":"a","outflow":7}`, []string{"outflow"}},
		{`{"slug":"a","outflow":{"per_minute":-1,"max_active":4294967296}}`, []string{"outflow.per_minute", "outflow.max_active"}},
		{`{"slug":"a","outflow":{"per_minute":1.5,"max_active":"9"}}`, []string{"outflow.per_minute", "outflow.max_active"}},
		{`{"slug":"a","outflow":{"per_minute":0}}`, []string{"outflow.per_minute"}},
		{`{"slug":"a","outflow":{"per_hour":60}}`, []string{"outflow.per_hour"}},
		{`{"slug":"a","methods":[{"name":"task","kind":"work","bits":20}],"lanes":[{"name":"general","weight":1,"needs":["task"]}]}`, nil},
		{`{"slug":"a","methods":{}}`, []string{"methods"}},
		{`{"slug":"a","slots":"30s","methods":[{"name":"club","kind":"signed","key":"` + vouchers.club.Method.Key + `"}],"lots":["club"]}`, nil},
		{`{"slug":"a","slots":"1m","x":1}`, []string{"x", "slots"}}, // the first window is a minute
		{`{"slug":"a","slots":"937ms","x":1}`, []string{"x", "slots"}},
		{`{"slug":"a","slots":"938ms"}`, nil},
		{`{"slug":"a","slots":"0s","lots":"club"}`, []string{"slots", "lots"}},
		{`{"slug":"a","slots":64,"lots":["-"]}`, []string{"slots", "lots[0]", "lots"}},
		{`{"slug":"a","x":1,"lots":["club"]}`, []string{"x", "lots"}},
		{`{"slug":"a","x":1,"methods":[{"name":"task","kind":"work","bits":20}],"lots":["task"]}`, []string{"x", "lots"}},
		{
			`{"slug":"a","methods":[{"name":"A","kind":"vdf","bits":41,"key":"XY","limit":-1,"url":""}]}`,
			[]string{"methods[0].url", "methods[0].name", "methods[0].kind", "methods[0].bits", "methods[0].key", "methods[0].limit"},
		},
		{
			`{"slug":"a","x":1,"methods":[{"name":"club","kind":"signed"},{"kind":"work","bits":1},{"name":"b"},{"name":"c","kind":"work"}],"lanes":[{"name":"a","weight":1,"needs":["fans"]},{"name":"b","weight":1,"needs":"club"}]}`,
			[]string{"x", "lanes[1].needs", "methods[0].key", "methods[1].name", "methods[2].kind", "methods[3].bits", "lanes[0].needs"},
		},
		{`{"slug":"a","x":1,"beacon":"none","methods":[{"name":"task","kind":"work","bits":20}]}`, []string{"x", "methods[0].kind"}},
		// One error lists both the values that cannot be parsed and the other problems.
		{
			`{"slug":"-A-","title":"a\u0000","claim":"x","session":"1ms","beacon":"dice","outflow":{"per_minute":10000001},"windows":[{"length":"1ms"},{"length":"2m"}],"opens":"2030-05-01T12:00:00Z","starts":"2030-05-01T11:00:00Z","closes":"2030-05-01T12:00:00Z"}`,
			[]string{"slug", "title", "windows[0].length", "outflow.per_minute", "claim", "session", "beacon", "windows[1].from", "starts", "closes", "windows[0].from"},
		},
		{`{"opens":7,"windows":[{"from":"2030-05-01T12:00:00Z","length":"1m"}]}`, []string{"opens", "slug"}},
	} {
		_, err := ParseConfig([]byte(test.json))
		if diff := cmp.Diff(test.fields, fieldsOf(t, err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.json, diff)
		}
	}
}

// TestConfigProblems checks the problems of configurations that can be parsed.
func TestConfigProblems(t *testing.T) {
	t.Parallel()
	in := func(d time.Duration) *time.Time { return at(moment.Add(d)) }
	many := make([]WindowRule, fairness.MaxRules+1)
	for i := range many {
		many[i] = WindowRule{From: in(time.Duration(i) * time.Hour), Length: Duration(time.Minute)}
	}
	for _, test := range []struct {
		config Config
		fields []string
	}{
		{Config{Slug: "a"}, nil},
		{Config{Slug: strings.Repeat("a", 63), Title: strings.Repeat("é", setting.MaxTitle)}, nil},
		{Config{}, []string{"slug"}},
		{Config{Slug: "a\n"}, []string{"slug"}},
		{Config{Slug: strings.Repeat("a", 64)}, []string{"slug"}},
		{Config{Slug: "a", Title: strings.Repeat("é", setting.MaxTitle+1)}, []string{"title"}},
		{Config{Slug: "a", Title: "\xff"}, []string{"title"}},
		{Config{Slug: "a", Title: "a\x00"}, []string{"title"}},
		{Config{Slug: "a", Opens: in(-time.Millisecond)}, []string{"opens"}},
		{Config{Slug: "a", Opens: in(0)}, nil},
		{Config{Slug: "a", Starts: in(-time.Hour)}, []string{"starts"}},
		{Config{Slug: "a", Opens: in(time.Hour), Starts: in(time.Hour - 1)}, []string{"starts"}},
		{Config{Slug: "a", Closes: in(0)}, []string{"closes", "windows[0].from"}},
		{Config{Slug: "a", Claim: span(999 * time.Millisecond), Session: span(8 * 24 * time.Hour)}, []string{"claim", "session"}},
		{Config{Slug: "a", Claim: span(-time.Second)}, []string{"claim"}},
		{Config{Slug: "a", Beacon: "quicknet"}, []string{"beacon"}},
		{Config{Slug: "a", Beacon: "drand:quicknet"}, nil}, // whether the server has relays for it is checked when the room is created
		{Config{Slug: "a", Outflow: Outflow{PerMinute: fairness.MaxRate + 1}}, []string{"outflow.per_minute"}},
		{Config{Slug: "a", Windows: []WindowRule{{}}}, []string{"windows[0].length"}},
		{Config{Slug: "a", Windows: []WindowRule{{Length: Duration(time.Minute)}, {Length: Duration(time.Minute)}}}, []string{"windows[1].from", "windows[1].from"}},
		{Config{Slug: "a", Opens: in(0), Windows: []WindowRule{{From: in(time.Second), Length: Duration(time.Minute)}}}, []string{"windows[0].from"}},
		{Config{Slug: "a", Windows: []WindowRule{{From: in(time.Second), Length: Duration(time.Minute)}}}, nil},
		{Config{Slug: "a", Windows: many}, []string{"windows"}},
	} {
		err := test.config.check(moment)
		if diff := cmp.Diff(test.fields, fieldsOf(t, err)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test.config, diff)
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	opens, starts := moment.Add(time.Hour), moment.Add(2*time.Hour)
	for _, test := range []struct{ given, want Config }{
		{
			Config{Slug: "a"},
			Config{Title: "a", Opens: &moment, Starts: &moment, Windows: []WindowRule{{&moment, Duration(DefaultWindow)}}},
		},
		{
			Config{Slug: "a", Title: "A", Opens: &opens, Starts: &starts},
			Config{Title: "A", Opens: &opens, Starts: &starts, Windows: []WindowRule{{&opens, Duration(time.Hour)}, {&starts, Duration(DefaultWindow)}}},
		},
		{ // too short for a separate window
			Config{Slug: "a", Opens: &opens, Starts: at(opens.Add(99 * time.Millisecond))},
			Config{Title: "a", Opens: &opens, Starts: at(opens.Add(99 * time.Millisecond)), Windows: []WindowRule{{&opens, Duration(DefaultWindow)}}},
		},
		{ // the first window may determine when the room opens
			Config{Slug: "a", Windows: []WindowRule{{&starts, Duration(time.Hour)}}},
			Config{Title: "a", Opens: &starts, Starts: &starts, Windows: []WindowRule{{&starts, Duration(time.Hour)}}},
		},
	} {
		test.want.Lanes = []LaneRule{{Name: fairness.General, Weight: 1}}
		test.want.Slug, test.want.Outflow = "a", Outflow{PerMinute: DefaultPerMinute}
		test.want.Notice, test.want.Claim = span(DefaultNotice), span(DefaultClaim)
		test.want.Grace, test.want.Session = span(DefaultGrace), span(DefaultSession)
		if diff := cmp.Diff(test.want, test.given.withDefaults(moment)); diff != "" {
			t.Errorf("defaults of %+v (-want +got):\n%s", test.given, diff)
		}
	}
}

// TestDefaultMaxWaiting: a room without a configured limit of its line has the default limit, everywhere
// where its configuration is stored.
func TestDefaultMaxWaiting(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]uint32{
		`{"slug":"a"}`: DefaultMaxWaiting, `{"slug":"a","max_waiting":null}`: DefaultMaxWaiting, `{"slug":"a","max_waiting":0}`: 0, `{"slug":"a","max_waiting":7}`: 7,
	} {
		c, err := ParseConfig([]byte(given))
		if err != nil || c.MaxWaiting != want {
			t.Errorf("%s: %d, %v, want %d", given, c.MaxWaiting, err, want)
		}
		kept, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var again Config
		if err := json.Unmarshal(kept, &again); err != nil || again.MaxWaiting != want || !strings.Contains(string(kept), `"max_waiting":`) {
			t.Errorf("%s is kept as %s, %v", given, kept, err)
		}
	}
}

// TestDefaultWindowsMeet checks that the window before the start ends at the start, even if times have
// fractions of milliseconds.
func TestDefaultWindowsMeet(t *testing.T) {
	t.Parallel()
	opens, starts := moment.Add(900*time.Microsecond), moment.Add(time.Second+100*time.Microsecond)
	p, err := Config{Slug: "a", Opens: &opens, Starts: &starts}.withDefaults(moment).policy(anyone)
	if err != nil {
		t.Fatal(err)
	}
	w, ok := fairness.NewSchedule(p).At(p.Starts - 1)
	if !ok || w.Index != 0 || w.To != p.Starts {
		t.Errorf("the window before the start is %+v, want number 0 up to %d", w, p.Starts)
	}
}

// anyone is the identity of an arbitrary room.
var anyone = fairness.Policy{Origin: "x", LogKey: "x+", VRFKey: [fairness.PublicKeySize]byte{2}}

// TestConfigOf converts configurations to policies and back.
func TestConfigOf(t *testing.T) {
	t.Parallel()
	opens, starts := moment.Add(time.Hour), moment.Add(2*time.Hour)
	for _, given := range []Config{
		{Slug: "a"},
		{Slug: "a", Title: "Æ", Opens: &opens, Starts: &starts, Closes: at(starts.Add(time.Hour)), Outflow: Outflow{7, 9}, Claim: span(time.Second), Session: span(time.Hour)},
		{Slug: "a", Opens: &opens, Windows: []WindowRule{{Length: Duration(time.Minute)}, {&starts, Duration(time.Second)}}},
	} {
		want := given.withDefaults(moment)
		want.Beacon = fairness.NoBeacon
		p, err := want.policy(anyone)
		if err != nil {
			t.Fatal(err)
		}
		got := configOf(want.Slug, want.Title, p, snapshotOf(t, p))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", given, diff)
		}
	}
}

// snapshotOf returns the snapshot of a room that has only its policy.
func snapshotOf(t *testing.T, p *fairness.Policy) *Snapshot {
	t.Helper()
	state := projection.New(nil, nil)
	if err := state.Apply(&fairness.Room{Policy: *p}, nil); err != nil {
		t.Fatal(err)
	}
	return newSnapshot(state, 1, 0)
}

// TestParseAmendment tries every kind of wrong value, and checks that its field is named.
func TestParseAmendment(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		json   string
		fields []string
	}{
		{`{"title":"a","message":null,"outflow":{"per_minute":1},"closes":"2030-05-01T12:00:00Z","windows":[{"from":"2030-05-01T12:00:00Z","length":"1m"}]}`, []string{"windows[0].from"}},
		{`{"title":"","outflow":{"per_minute":10000000,"max_active":0},"windows":[{"from":"2030-05-01T12:00:00Z","length":"1m"}]}`, nil},
		{`{"message":1,"title":"a\u0000"}`, []string{"title", "message"}},
		{`{"outflow":null,"message":null,"title":null,"windows":null,"closes":null}`, nil},
		{`{}`, []string{""}},
		{`null`, []string{""}},
		{`{"slug":"b"}`, []string{"slug"}},
		{`{"outflow":{}}`, []string{"outflow"}},
		{`{"outflow":[]}`, []string{"outflow"}},
		{`{"outflow":{"per_minute":0}}`, []string{"outflow.per_minute"}},
		{`{"outflow":{"per_minute":10000001,"max_active":-1}}`, []string{"outflow.per_minute", "outflow.max_active"}},
		{`{"closes":"never"}`, []string{"closes"}},
		{`{"closes":"2030-05-01T12:00:00Z","closes":"2031-05-01T12:00:00Z"}`, []string{"closes"}},
		{`{"windows":[{"length":"1m"},{"from":1,"length":"1m"}]}`, []string{"windows[1].from", "windows[0].from"}},
		{
			`{"windows":[{"from":"2030-05-01T12:00:00Z"},{"from":"2030-05-01T11:00:00Z","length":"1ms"}]}`,
			[]string{"windows[1].length", "windows[0].length", "windows[1].from"},
		},
	} {
		_, err := ParseAmendment([]byte(test.json))
		if diff := cmp.Diff(test.fields, fieldsOf(t, err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.json, diff)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(`{"slug":"sale","title":"Sale","opens":"2030-05-01T12:00:00Z","starts":"2030-05-01T13:00:00.5+02:00","closes":"2031-01-01T00:00:00Z","windows":[{"length":"1h"},{"from":"2030-05-01T14:00:00Z","length":"30s"}],"outflow":{"per_minute":60,"max_active":9},"claim":"2m","session":"15m","beacon":"none"}`))
	f.Add([]byte(`{"slug":7,"windows":[{}],"outflow":{"per_minute":0},"other":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseConfig(data)
		if err != nil {
			_ = fieldsOf(t, err)
			return
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatalf("%+v cannot be written: %v", c, err)
		}
		wrong := c.check(moment)
		if wrong != nil {
			_ = fieldsOf(t, wrong)
			return
		}
		again, err := ParseConfig(withoutNulls(t, text))
		if diff := cmp.Diff(c, again); err != nil || diff != "" {
			t.Fatalf("%s is read as (-first +second) %v:\n%s", text, err, diff)
		}
		said := c.withDefaults(moment)
		p, err := said.policy(anyone)
		if err != nil {
			t.Fatal(err)
		}
		second, err := configOf(c.Slug, said.Title, p, snapshotOf(t, p)).policy(anyone)
		if diff := cmp.Diff(p, second); err != nil || diff != "" {
			t.Fatalf("policy of %s (-first +second) %v:\n%s", text, err, diff)
		}
	})
}

// withoutNulls drops the members that a configuration does not set, which are null or zero.
func withoutNulls(t *testing.T, text []byte) []byte {
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}
	if o, _ := members["outflow"].(map[string]any); o["per_minute"] == float64(0) {
		delete(o, "per_minute")
	}
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func FuzzParseAmendment(f *testing.F) {
	f.Add([]byte(`{"title":"a","message":{"texts":{"en":"b"},"for":"10m"},"outflow":{"per_minute":1,"max_active":2},"closes":"2030-05-01T12:00:00Z","windows":[{"from":"2030-05-01T11:00:00Z","length":"1m"}]}`))
	f.Add([]byte(`{"windows":[{}],"outflow":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := ParseAmendment(data)
		if err != nil {
			_ = fieldsOf(t, err)
			return
		}
		if problems := a.problems(); len(problems) > 0 {
			t.Fatalf("%s is fine when read, and then %v", data, problems)
		}
		// An amendment that is valid for any room is either refused as a whole or applied as a whole.
		p, err := Config{Slug: "a"}.withDefaults(moment).policy(anyone)
		if err != nil {
			t.Fatal(err)
		}
		var state fairness.State
		if err := state.Apply(&fairness.Room{Policy: *p}, nil); err != nil {
			t.Fatal(err)
		}
		now := millis.Of(moment)
		for i, e := range a.entries(now, &state, [fairness.HashSize]byte{1}) {
			text := fairness.AppendEntry(nil, e)
			if err := state.Apply(e, nil); err != nil && i > 0 {
				t.Fatalf("%s: entry %d is refused: %v", data, i, err)
			} else if err != nil {
				break
			}
			if _, err := fairness.ParseEntry(text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
	})
}

// TestDuration parses and formats durations.
func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"30s": 30 * time.Second, "1m30s": 90 * time.Second, "1.5s": 1500 * time.Millisecond, "-1s": -time.Second, "0": 0} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || time.Duration(d) != want {
			t.Errorf("%s is %v, %v", text, time.Duration(d), err)
		}
	}
	var d Duration
	for _, text := range []string{"", "1", "s", "1us", "1.0001s", "9999999999h"} {
		if err := d.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %v", text, time.Duration(d))
		}
	}
	if text, err := Duration(90 * time.Second).MarshalText(); err != nil || string(text) != "1m30s" {
		t.Errorf("written as %s, %v", text, err)
	}
}

// TestErrors checks the errors that contain data.
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want string
	}{
		{&EarlyError{Wait: 90 * time.Second}, "the room opens in 1m30s"},
		{&EarlyError{Wait: 90*time.Second + 400*time.Millisecond}, "the room opens in 1m31s"},
		{&EarlyError{Wait: 3 * time.Millisecond}, "the room opens in 1s"},
	} {
		if test.err.Error() != test.want {
			t.Errorf("%q, want %q", test.err, test.want)
		}
	}
}

// TestProblemsAnywhere: problems that do not depend on the server are found without one.
func TestProblemsAnywhere(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 5, 1, 0, 0, 0, 0, time.UTC)
	short := Duration(time.Millisecond)
	if list := (Config{Slug: "-", Claim: &short}).Problems(now); len(list) != 2 || list[0].Field != "slug" || list[1].Field != "claim" {
		t.Errorf("problems %+v", list)
	}
	if list := (Config{Slug: "sale", Beacon: "drand:unheard-of"}).Problems(now); len(list) != 0 {
		t.Errorf("problems %+v", list)
	}
}

// TestManyProblems: an input with very many mistakes is refused as quickly as any other, with a response that
// is not longer than the input.
func TestManyProblems(t *testing.T) {
	t.Parallel()
	var names, windows []string
	many := 40_000
	if testing.Short() {
		many = 10_000
	}
	for i := range many {
		names, windows = append(names, fmt.Sprintf(`"k%d":1`, i)), append(windows, "1")
	}
	for _, text := range []string{
		"{" + strings.Join(names, ",") + "}", `{"windows":[` + strings.Join(windows, ",") + "]}", `{"brand":{` + strings.Join(names, ",") + "}}",
	} {
		began := time.Now()
		_, err := ParseConfig([]byte(text))
		_, amendErr := ParseAmendment([]byte(text))
		for _, err := range []error{err, amendErr} {
			if wrong, ok := errors.AsType[*invalid.Error](err); !ok || len(wrong.Problems) > 100 || len(err.Error()) > 40_000 {
				t.Errorf("%.30s: %.100v", text, err)
			}
		}
		if took := time.Since(began); took > 2*time.Minute { // a second if the machine is not busy
			t.Errorf("%.30s took %v", text, took)
		}
	}
}
