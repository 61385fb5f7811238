package door

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/invalid"
)

func TestParseList(t *testing.T) {
	t.Parallel()
	n, long := strings.Repeat("0a", 32), strings.Repeat("00", 513)
	for text, want := range map[string]string{
		`[]`: "", `null`: "",
		`[{"method":"task","evidence":"00"}]`:                         "",
		`[{"method":"task","nullifier":null,"evidence":"00"}]`:        "",
		`[{"method":"task","nullifier":"` + n + `","evidence":"00"}]`: "",
		``:                                    "credentials",
		`{}`:                                  "credentials",
		`"task - 00"`:                         "credentials",
		`[7]`:                                 "credentials",
		`[{"method":7,"evidence":"00"}]`:      "credentials",
		`[{"Method":"task","evidence":"00"}]`: "credentials",
		`[{"method":"task","evidence":"00","x":1}]`:                                                     "credentials",
		`[{"method":"a","method":"task","evidence":"00"}]`:                                              "credentials",
		`[{"method":{"method":{}},"evidence":"00"}]`:                                                    "credentials",
		`[` + strings.Repeat(`{"method":"a","evidence":"00"},`, 16) + `{"method":"a","evidence":"00"}]`: "credentials",
		`[{}]`:                "credentials[0]",
		`[{"method":"task"}]`: "credentials[0]",
		`[{"method":"Task","evidence":"00"},{"method":"a","evidence":"0G"}]`: "credentials[0] credentials[1]",
		`[{"method":"a","evidence":"00"},{"method":"a b","evidence":"00"}]`:  "credentials[1]",
		`[{"method":"a","evidence":"0A"}]`:                                   "credentials[0]",
		`[{"method":"a","evidence":"` + long + `"}]`:                         "credentials[0]",
		`[{"method":"a","nullifier":"-","evidence":"00"}]`:                   "credentials[0]",
		`[{"method":"a","nullifier":"` + n[2:] + `","evidence":"00"}]`:       "credentials[0]",
	} {
		list, err := ParseList([]byte(text))
		var fields []string
		for _, p := range invalid.Problems(err) {
			fields = append(fields, p.Field)
		}
		if _, is := errors.AsType[*MalformedError](err); is != (want != "") || strings.Join(fields, " ") != want {
			t.Errorf("%.80s: %v, want a problem with %q", text, err, want)
		}
		if err == nil {
			roundTrip(t, list)
		}
	}
}

// roundTrip writes credentials and reads them again.
func roundTrip(t *testing.T, list []credential.Credential) {
	t.Helper()
	written := []Written{}
	for _, c := range list {
		written = append(written, Write(c))
	}
	text, err := json.Marshal(written)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseList(text)
	if diff := cmp.Diff(list, again); err != nil || len(list) > 0 && diff != "" {
		t.Errorf("%s: %v (-want +got)\n%s", text, err, diff)
	}
}

func FuzzParseList(f *testing.F) {
	f.Add([]byte(`[{"method":"task","evidence":"00"},{"method":"club","nullifier":"` + strings.Repeat("0a", 32) + `","evidence":"01"}]`))
	f.Add([]byte(`[{"method":"task","method":"task"}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := ParseList(text)
		if err != nil {
			if _, is := errors.AsType[*MalformedError](err); !is {
				t.Error(err)
			}
			return
		}
		roundTrip(t, list)
	})
}
