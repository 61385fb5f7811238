package args

import (
	"testing"

	"github.com/spf13/cobra"
)

// TestName runs commands with wrong numbers of arguments.
func TestName(t *testing.T) {
	for _, c := range []struct {
		given []string
		want  string
	}{
		{[]string{"end"}, "end takes SLUG, but got no argument"},
		{[]string{"end", "a", "b"}, "end takes SLUG, but got 2 arguments"},
		{[]string{"copy", "a"}, "copy takes FROM TO, but got one argument"},
		{[]string{"end", "a"}, ""},
		{[]string{"none", "a"}, `unknown command "a" for "tool none"`},
	} {
		run := func(*cobra.Command, []string) error { return nil }
		root := &cobra.Command{Use: "tool", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(&cobra.Command{Use: "end SLUG", Args: cobra.ExactArgs(1), RunE: run},
			&cobra.Command{Use: "copy FROM TO", Args: cobra.ExactArgs(2), RunE: run},
			&cobra.Command{Use: "none", Args: cobra.NoArgs, RunE: run})
		Name(root)
		root.SetArgs(c.given)
		got := ""
		if err := root.Execute(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.given, got, c.want)
		}
	}
}
