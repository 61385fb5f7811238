package room

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/room/branding"
)

// logo returns the data URL of an image.
func logo(width int) string {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, 1))); err != nil {
		panic(err)
	}
	return branding.DataURL("image/png", b.Bytes())
}

// TestBrandJSON reads all of what is written, and names every unknown member.
func TestBrandJSON(t *testing.T) {
	t.Parallel()
	want := branding.Brand{
		Scheme: branding.Scheme{Logo: logo(1), Color: "#112233", Background: "#ffffff"},
		Dark:   branding.Scheme{Logo: logo(2), Color: "#aabbcc", Background: "#000000"},
		Texts: map[string]branding.Texts{"de": {
			Headline: "a", Intro: "b", Help: "c", HelpURL: "https://example.com/1", Footer: "d",
			PrivacyURL: "https://example.com/2", ImprintURL: "mailto:a@example.com",
		}, "en": {Intro: "x"}},
		Languages: []string{"de", "en"}, Font: "mono", Corners: "square", CSS: "h2 {\n  gap: 0;\n}\n",
	}
	text, err := json.Marshal(SettingsChange{Brand: &want})
	if err != nil {
		t.Fatal(err)
	}
	a, err := ParseAmendment(text)
	if err != nil || cmp.Diff(&want, a.Brand) != "" {
		t.Errorf("%v %s", err, cmp.Diff(&want, a.Brand))
	}
	if stored := want.Stored(); cmp.Diff(want, stored) != "" {
		t.Errorf("stored: %s", cmp.Diff(want, stored))
	}
	for text, fields := range map[string]string{
		`{"brand":{"logo":7,"dark":[],"texts":{"de":{"headline":1,"x":""},"klingon":{}},"languages":"de","font":1,"css":{},"z":1}}`: "brand.z brand.logo brand.dark brand.texts.klingon brand.texts.de.x brand.texts.de.headline brand.languages brand.font brand.css",
		`{"brand":{"css":"h1{display:none}\nh2{x:y}","languages":["xx"],"texts":{"de":{"help_url":"x"}}}}`:                          "brand.texts.de.help_url brand.languages brand.css",
	} {
		_, err := ParseAmendment([]byte(text))
		if got := problemFields(t, err); got != fields {
			t.Errorf("%s: problems with %s, want %s", text, got, fields)
		}
	}
	_, err = ParseAmendment([]byte(`{"brand":{"css":"h1{display:none}\nh2{x:y}"}}`))
	if text := fmt.Sprint(err); !strings.Contains(text, "line 1, column 4: ") || !strings.Contains(text, "line 2, column 4: ") {
		t.Error(text)
	}
}

// TestOldBrand reads settings that were stored by earlier versions.
func TestOldBrand(t *testing.T) {
	t.Parallel()
	var s Settings
	err := json.Unmarshal([]byte(`{"targets":["https://example.com"],"brand":{"logo":"data:x","color":"#112233","background":"#ffffff"}}`), &s)
	want := Settings{Targets: []string{"https://example.com"}, Brand: branding.Brand{Scheme: branding.Scheme{Logo: "data:x", Color: "#112233", Background: "#ffffff"}}}
	if err != nil || cmp.Diff(want, s) != "" {
		t.Errorf("%v %s", err, cmp.Diff(want, s))
	}
}
