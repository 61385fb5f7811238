package rooms

import (
	"encoding/json"
	"testing"

	"github.com/proofline/proofline/room/setting"
)

func TestFieldName(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]string{
		"slug": "Address, last part", "windows[2].length": "Windows, row 3", "targets[0]": "Addresses of the shop, row 1", "brand.dark.logo": "Brand",
		"outflow.per_minute": "People per minute", "windows[x]": "windows[x]", "color": "color", "": "",
	} {
		if got := fieldName(field); got != want {
			t.Errorf("%q is %q, want %q", field, got, want)
		}
	}
	for _, s := range setting.All() {
		if fieldName(s.Name) == s.Name {
			t.Errorf("the console has no name for %s", s.Name)
		}
	}
}

// TestObjectLines parses and formats lists of objects, one per line.
func TestObjectLines(t *testing.T) {
	t.Parallel()
	kind := setting.Objects{Members: []setting.Setting{
		{Name: "name", Kind: setting.Text{}}, {Name: "weight", Kind: setting.Number{Max: 9}}, {Name: "needs", Kind: setting.List{}},
	}}
	for typed, want := range map[string]string{
		"":                              `null`,
		"fans 3 work,club\ngeneral 1 -": `[{"name":"fans","needs":["work","club"],"weight":3},{"name":"general","weight":1}]`,
		"fans many":                     `[{"name":"fans","weight":"many"}]`,
		"fans 1 - more":                 `[{"":"more","name":"fans","weight":1}]`,
	} {
		got, err := json.Marshal(jsonTyped(kind, typed))
		if err != nil || string(got) != want {
			t.Errorf("%q is %s, %v, want %s", typed, got, err, want)
		}
		again, err := json.Marshal(jsonTyped(kind, typedText(kind, got)))
		if err != nil || string(again) != want && typed != "fans 1 - more" {
			t.Errorf("%q is shown as %q, which is %s, %v", typed, typedText(kind, got), again, err)
		}
	}
}
