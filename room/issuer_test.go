package room

import (
	"testing"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/room/setting"
)

// sparseIssuer lacks one thing.
type sparseIssuer struct {
	Issuer
	lacks string // key
}

func (i sparseIssuer) Lacks(key string) string {
	if key == i.lacks {
		return "this server has none: start it with --some"
	}
	return ""
}

func TestOwnKeys(t *testing.T) {
	for _, test := range []struct {
		key, kind string
		of        Issuer
		want      string // problem
	}{
		{setting.OwnKey, "signed", nil, "is own, but this server runs no issuer: give an issuer's key"},
		{setting.OwnMailKey, "signed", nil, "is own-mail, but this server runs no issuer: give an issuer's key"},
		{setting.OwnMailKey, "signed", sparseIssuer{lacks: "own-mail"}, "is own-mail, but this server has none: start it with --some"},
		{setting.OwnMailKey, "blind", sparseIssuer{}, ""},
		{setting.OwnOIDCKey, "blind", sparseIssuer{lacks: "own-mail"}, ""},
		{setting.OwnCaptchaKey, "signed", sparseIssuer{}, ""},
		{setting.OwnCaptchaKey, "blind", sparseIssuer{}, "is own-captcha, which only a signed method can have"},
		{setting.OwnPuzzleKey, "blind", sparseIssuer{}, "is own-puzzle, which only a signed method can have"},
		{"00", "signed", nil, ""},
	} {
		c := Config{Methods: []credential.Method{{Name: "club", Kind: credential.Kind(test.kind), Key: test.key}}}
		got := ""
		if problems := c.ownKeys(test.of); len(problems) > 0 {
			got = problems[0].Detail
			if problems[0].Field != "methods[0].key" || len(problems) > 1 {
				t.Errorf("problems %+v", problems)
			}
		}
		if got != test.want {
			t.Errorf("%s %s: %q, want %q", test.kind, test.key, got, test.want)
		}
	}
}
