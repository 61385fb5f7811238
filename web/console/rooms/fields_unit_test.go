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
		"":                            `null`,
		"fans 3 work,club\ngeneral 1": `[{"name":"fans","needs":["work","club"],"weight":3},{"name":"general","weight":1}]`,
		"fans many":                   `[{"name":"fans","weight":"many"}]`,
		"fans 1 - more":               `[{"":"more","name":"fans","weight":1}]`,
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

// TestMethodLines parses and formats methods as an issuer prints them.
func TestMethodLines(t *testing.T) {
	t.Parallel()
	kind := setting.Methods{}
	for typed, test := range map[string]struct{ json, shown string }{
		"":                            {`null`, ""},
		"method club signed ab 5000":  {`[{"key":"ab","kind":"signed","limit":5000,"name":"club"}]`, "club signed ab 5000"},
		"club blind ab\ntask work 20": {`[{"key":"ab","kind":"blind","name":"club"},{"bits":20,"kind":"work","name":"task"}]`, "club blind ab\ntask work 20"},
		"method work 20":              {`[{"bits":20,"kind":"work","name":"method"}]`, "method work 20"},
		"method signed ab 1":          {`[{"key":"ab","kind":"signed","limit":1,"name":"method"}]`, "method signed ab 1"},
		"club signed ab many":         {`[{"key":"ab","kind":"signed","limit":"many","name":"club"}]`, "club signed ab many"},
		"club":                        {`[{"name":"club"}]`, "club"},
		"task work 20 more":           {`[{"":"more","bits":20,"kind":"work","name":"task"}]`, "task work 20"},
	} {
		got, err := json.Marshal(jsonTyped(kind, typed))
		if err != nil || string(got) != test.json {
			t.Errorf("%q is %s, %v, want %s", typed, got, err, test.json)
		}
		if shown := typedText(kind, got); shown != test.shown {
			t.Errorf("%q is shown as %q", typed, shown)
		}
	}
}
