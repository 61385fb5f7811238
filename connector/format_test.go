package connector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/internal/doctest"

	"github.com/proofline/proofline/connector/internal/report"
)

// described are members that FORMAT.md mentions in its text only.
var described = []string{"token_ends", "error"}

// membersOf returns the names of a type's JSON members.
func membersOf(t reflect.Type) (list []string) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return membersOf(t.Elem())
	case reflect.Struct:
	default:
		return nil
	}
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" {
			list = append(append(list, name), membersOf(t.Field(i).Type)...)
		}
	}
	return list
}

// TestFormatOfReports tests that the report and the reply in FORMAT.md have exactly the
// members that this connector sends and reads.
func TestFormatOfReports(t *testing.T) {
	t.Parallel()
	found := 0
	for _, block := range doctest.Blocks(t, "rules/FORMAT.md", "json") {
		var into any
		switch {
		case strings.HasPrefix(block, `{"node"`):
			into = &report.Report{}
		case strings.HasPrefix(block, `{"rooms": [`):
			into = &report.Reply{}
		default:
			continue
		}
		found++
		d := json.NewDecoder(bytes.NewReader([]byte(block)))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			t.Errorf("%v\n%s", err, block)
		}
		for _, name := range membersOf(reflect.TypeOf(into)) {
			if !strings.Contains(block, `"`+name+`"`) && !slices.Contains(described, name) {
				t.Errorf("not shown: %s\n%s", name, block)
			}
		}
	}
	text := doctest.Read(t, "rules/FORMAT.md")
	for _, name := range described {
		if !strings.Contains(text, "`"+name+"`") && !strings.Contains(text, `"`+name+`"`) {
			t.Errorf("FORMAT.md does not have %s", name)
		}
	}
	if found != 2 {
		t.Errorf("%d blocks about reports", found)
	}
}

// TestScriptSize tests the size of the script in the documents.
func TestScriptSize(t *testing.T) {
	t.Parallel()
	kB := fmt.Sprintf("%.0f kB", float64(len(doctest.Read(t, "client/wait.js")))/1000)
	for document, says := range map[string]string{"../README.md": "[a script of " + kB + "](connector/client/README.md)",
		"client/README.md": "It is " + kB + ", needs nothing"} {
		if !strings.Contains(doctest.Read(t, document), says) {
			t.Errorf("%s does not say %q", document, says)
		}
	}
}
