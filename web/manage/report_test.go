package manage

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room/safetynet"
)

const sampleID = "AAAAAAAAAAAAAAAAAAAAAA"

// reported returns a report of one room with these members.
func reported(members string) string {
	return `{"node":"` + sampleID + `","kind":"proxy","version":"1","rooms":[{"room":"https://example.com/r/a",` + members + `}]}`
}

// TestReportRefusals names the problems, field by field.
func TestReportRefusals(t *testing.T) {
	t.Parallel()
	many := func(n int, what string) string { return strings.TrimSuffix(strings.Repeat(what+",", n), ",") }
	for name, c := range map[string]struct{ body, field string }{
		"a short node":             {`{"node":"AA"}`, "node"},
		"padding that is not 0":    {`{"node":"` + sampleID[:21] + `B"}`, "node"},
		"another mode":             {reported(`"mode":"open"`), "rooms[0].mode"},
		"no id":                    {reported(`"started":["x"]`), "rooms[0].started"},
		"an id with padding":       {reported(`"active":["` + sampleID + `=="]`), "rooms[0].active"},
		"a line break in an id":    {reported(`"ended":["` + sampleID[:10] + `\n` + sampleID[10:] + `"]`), "rooms[0].ended"},
		"too many":                 {reported(`"ended":[` + many(safetynet.MaxSessions+1, `"`+sampleID+`"`) + `]`), "rooms[0].ended"},
		"too many fail_open":       {reported(`"fail_open":[` + many(safetynet.MaxFailOpen+1, `{"id":"`+sampleID+`","from":1,"until":2}`) + `]`), "rooms[0].fail_open"},
		"fail_open without id":     {reported(`"fail_open":[{"from":1,"until":2,"requests":0}]`), "rooms[0].fail_open[0].id"},
		"fail_open for no time":    {reported(`"fail_open":[{"id":"` + sampleID + `","from":2,"until":2}]`), "rooms[0].fail_open[0]"},
		"fail_open before 1970":    {reported(`"fail_open":[{"id":"` + sampleID + `","from":-2,"until":2}]`), "rooms[0].fail_open[0]"},
		"fail_open for ever":       {reported(`"fail_open":[{"id":"` + sampleID + `","from":2,"until":9007199254740992}]`), "rooms[0].fail_open[0]"},
		"fewer requests than none": {reported(`"fail_open":[{"id":"` + sampleID + `","from":1,"until":2,"requests":-1}]`), "rooms[0].fail_open[0]"},
		"too many rooms":           {`{"node":"` + sampleID + `","rooms":[` + many(maxReportRooms+1, `{}`) + `]}`, "rooms"},
		"a negative count":         {reported(`"turned":-1`), "rooms.turned"},
		"an unknown member":        {`{"node":"` + sampleID + `","nodes":1}`, "nodes"},
		"an unknown one of rooms":  {reported(`"share":1`), "share"},
		"two values":               {`{} {}`, ""},
	} {
		in, err := decode[wire.ReportInput](&call{body: []byte(c.body)})
		if err == nil {
			_, err = parseReport(&in)
		}
		wrong, ok := errors.AsType[*invalid.Error](err)
		if !ok || len(wrong.Problems) != 1 || wrong.Problems[0].Field != c.field {
			t.Errorf("%s: %v, want one problem of %q", name, err, c.field)
		}
	}
}

// TestReportParsed parses valid reports.
func TestReportParsed(t *testing.T) {
	t.Parallel()
	in, err := decode[wire.ReportInput](&call{body: []byte(reported(
		`"mode":"safety-net","started":["` + sampleID + `"],"active":null,"turned":3,"fail_open":[{"id":"` + sampleID + `","from":5,"until":9,"requests":7}]`))})
	if err != nil {
		t.Fatal(err)
	}
	list, err := parseReport(&in)
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if r := list[0]; !r.Shares || len(r.Started) != 1 || len(r.Active) != 0 || r.TurnedAway != 3 || len(r.FailOpen) != 1 || r.FailOpen[0].Until != 9 || r.FailOpen[0].Requests != 7 {
		t.Errorf("read %+v", r)
	}
}

// FuzzReport: an accepted report is within the limits, and a refused one is the sender's fault.
func FuzzReport(f *testing.F) {
	f.Add(reported(`"mode":"safety-net","started":["` + sampleID + `"]`))
	f.Add(reported(`"fail_open":[{"id":"` + sampleID + `","from":5,"until":9,"requests":7}]`))
	f.Add(`{"node":"` + sampleID + `","counts":{"a":1}}`)
	f.Fuzz(func(t *testing.T, body string) {
		in, err := decode[wire.ReportInput](&call{body: []byte(body)})
		var list []safetynet.Report
		if err == nil {
			list, err = parseReport(&in)
		}
		if wrong, ok := errors.AsType[*invalid.Error](err); err != nil && (!ok || len(wrong.Problems) == 0) {
			t.Errorf("%q: %v", body, err)
		}
		for i, r := range list {
			for _, ids := range [][2]int{{len(r.Started), len(in.Rooms[i].Started)}, {len(r.Active), len(in.Rooms[i].Active)}, {len(r.Ended), len(in.Rooms[i].Ended)}} {
				if ids[0] != ids[1] || ids[0] > safetynet.MaxSessions {
					t.Errorf("%q: %d ids of %d", body, ids[0], ids[1])
				}
			}
			for _, u := range r.FailOpen {
				if u.From < 1 || u.Until <= u.From || u.Requests < 0 {
					t.Errorf("%q: fail_open %+v", body, u)
				}
			}
			if text := base64.RawURLEncoding.EncodeToString(r.Node[:]); text != in.Node {
				t.Errorf("%q: node %s", body, text)
			}
		}
		if err == nil && !json.Valid([]byte(body)) {
			t.Errorf("%q is no JSON", body)
		}
	})
}

// BenchmarkReport parses the largest reports: of ids, and of members.
func BenchmarkReport(b *testing.B) {
	times := strings.TrimSuffix(strings.Repeat(`{"id":"`+sampleID+`","from":5,"until":9,"requests":7},`, safetynet.MaxFailOpen), ",")
	rooms := strings.TrimSuffix(strings.Repeat(`{"room":"https://example.com/r/a","fail_open":[`+times+`]},`, maxReportRooms), ",")
	ids := strings.TrimSuffix(strings.Repeat(`"`+sampleID+`",`, safetynet.MaxSessions), ",")
	for name, body := range map[string]string{
		"members": `{"node":"` + sampleID + `","kind":"proxy","version":"1","rooms":[` + rooms + `]}`,
		"ids":     reported(`"started":[` + ids + `],"active":[` + ids + `],"ended":[` + ids + `]`),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				in, err := decode[wire.ReportInput](&call{body: []byte(body)})
				if err == nil {
					_, err = parseReport(&in)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
