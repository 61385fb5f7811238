package account

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
	"github.com/proofline/proofline/internal/wire"
)

// TestPrintTokens: the list marks tokens that expire soon, with a shell command that
// replaces each, whatever its name.
func TestPrintTokens(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	in := func(left time.Duration, name, notice string) wire.Token {
		expires := time.Now().Add(left)
		return wire.Token{Name: name, Scopes: []string{"read", "pull"}, Expires: expires, Notice: notice}
	}
	var out, note bytes.Buffer
	m := remote.New(&cli.Terminal{Out: &out, Err: &note}, "")
	list := []wire.Token{
		in(80*day, "later", ""), in(5*day, "unused", ""), in(13*day+time.Hour, "the shop's $(reboot)", "soon"),
		in(time.Hour, "short", "last"), in(-time.Hour, "over", "ended"), in(-9*day, "long over", ""),
	}
	if err := printTokens(m, list); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{
		"EXPIRES", "", "", ", in 13 days ", ", in less than a day ", ", expired ", ", expired ",
	} {
		if !strings.Contains(lines[i], want) || want == "" && strings.Contains(lines[i], ",") {
			t.Errorf("line %q, want %q", lines[i], want)
		}
	}
	hint := func(name, end, quoted string) string {
		return "hint: " + name + " is in use and " + end + "; replace it with: proofline token create " + quoted +
			" --scope read,pull\n"
	}
	want := hint("the shop's $(reboot)", "expires in 13 days", `'the shop'\''s $(reboot)'`) +
		hint("short", "expires in less than a day", "'short'") + hint("over", "has expired", "'over'")
	if note.String() != want {
		t.Errorf("notes\n%s\nwant\n%s", note.String(), want)
	}
}
