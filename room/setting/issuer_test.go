package setting

import (
	"strings"
	"testing"
)

func TestParseIssuer(t *testing.T) {
	for text, want := range map[string]string{
		"club https://club.example.org/derby Example Fan Club":     "club https://club.example.org/derby Example Fan Club",
		"club https://club.example.org":                            "club https://club.example.org club.example.org",
		"club http://127.0.0.1:8080/issuer/sale.club Club":         "club http://127.0.0.1:8080/issuer/sale.club Club",
		"club http://10.1.2.3/issuer/sale.club Club":               "club http://10.1.2.3/issuer/sale.club Club",
		"club http://queue/issuer/sale.club Club":                  "club http://queue/issuer/sale.club Club",
		"club https://club.example.org/derby#member Club":          "club https://club.example.org/derby Club member",
		"club https://club.example.org#captcha":                    "club https://club.example.org club.example.org captcha",
		"club https://club.example.org/derby#number Club":          "",
		"club https://club.example.org/derby# Club":                "",
		"club https://club.example.org/derby#code#code Club":       "",
		"club http://club.example.org/derby Club":                  "",
		"club http://192.0.2.1/derby Club":                         "",
		"Club https://club.example.org/derby":                      "",
		"https://club.example.org/derby":                           "",
		"club  https://club.example.org/derby":                     "",
		"club https://club.example.org/derby  Club":                "",
		"club https://club.example.org/derby Club\u202e":           "",
		"club https://x@club.example.org/derby":                    "",
		"club https://club.example.org/derby?a=b":                  "",
		"club https://club.example.org/../derby":                   "",
		"club https://club.example.org;script-src/derby":           "",
		"club javascript:alert(1)":                                 "",
		"club https://club.example.org " + strings.Repeat("x", 81): "",
		"": "",
	} {
		i, ok := ParseIssuer(text)
		got := ""
		if ok {
			got = strings.TrimSpace(i.Method + " " + i.URL.String() + " " + i.Name + " " + string(i.Proof))
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzParseIssuer(f *testing.F) {
	f.Add("club https://club.example.org/derby Example Fan Club")
	f.Add("club https://club.example.org/derby#code Example Fan Club")
	f.Fuzz(func(t *testing.T, text string) {
		if i, ok := ParseIssuer(text); ok {
			proof := ""
			if i.Proof != "" {
				proof = "#" + string(i.Proof)
			}
			again, ok := ParseIssuer(i.Method + " " + i.URL.String() + proof + " " + i.Name)
			if !ok || again.Method != i.Method || again.Proof != i.Proof || again.URL.String() != i.URL.String() || again.Name != i.Name {
				t.Errorf("%q becomes %+v and then %+v", text, i, again)
			}
			if strings.ContainsAny(i.URL.Host, " ;,'\"") { // it goes into a Content-Security-Policy
				t.Errorf("%q has the host %q", text, i.URL.Host)
			}
		}
	})
}

// TestOwnKeys: every key of the server's own issuer can be configured, and is explained.
func TestOwnKeys(t *testing.T) {
	key, ok := Find("methods[].key")
	methods, _ := Find("methods")
	if !ok || isKey("own-") || isKey("own-other") || IsOwnKey("") || IsOwnKey("00") {
		t.Error("no setting, or other keys are own")
	}
	for _, own := range OwnKeys {
		if !isKey(own) || !IsOwnKey(own) || !strings.Contains(key.Help, "`"+own+"`") || !strings.Contains(methods.Help, "`"+own+"`") ||
			!strings.Contains(methods.Form.Hint, own) || !strings.Contains(OwnKeyLabel(own), ": ") || !strings.HasSuffix(OwnKeyLabel(own), " ("+own+")") {
			t.Errorf("%s is no key, or not explained", own)
		}
	}
}
