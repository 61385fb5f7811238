package manual_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/internal/manual"
)

// tool returns a program with what is difficult in roff.
func tool() *cobra.Command {
	run := func(*cobra.Command, []string) error { return nil }
	root := &cobra.Command{Use: "tool", Short: "Do things", SilenceErrors: true, SilenceUsage: true}
	keep := &cobra.Command{Use: "keep FILE", Short: "Keep a file", Long: "Keep it\nin /home/eve.\n\n  .dots 'and' \\n\n\n.first",
		Example: "  tool keep -", Args: cobra.ExactArgs(1), RunE: run}
	keep.Flags().String("in", "/home/eve", "`DIR` with it")
	keep.Flags().Bool("quiet", false, "say nothing")
	root.AddCommand(keep, &cobra.Command{Use: "secret", Hidden: true, RunE: run},
		manual.Program{Exit: []string{"done", "failed"},
			Replace: strings.NewReplacer("/home/eve", "~")}.Command())
	return root
}

func write(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	root := tool()
	root.SetArgs([]string{"manual", dir})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPages(t *testing.T) {
	t.Parallel()
	dir := write(t)
	pages, err := filepath.Glob(filepath.Join(dir, "man/man1/*"))
	if err != nil || len(pages) != 2 || filepath.Base(pages[1]) != "tool.1" {
		t.Fatalf("%q: %v", pages, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "man/man1/tool-keep.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`tool\-keep \- Keep a file`, "in ~.\n", "\n.nf\n  .dots \\(aqand\\(aq \\en\n", "\n\\&.first\n",
		"\\fB\\-\\-in\\fR \\fIDIR\\fR\nDIR with it (default ~)\n", "say nothing\n.SH EXAMPLES\n",
		".TP\n1\nfailed\n", "\\fBtool\\fR(1)"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestMan has man format the pages: it reports what is wrong in them.
func TestMan(t *testing.T) {
	t.Parallel()
	man, err := exec.LookPath("man")
	if err != nil {
		t.Skip("man is not installed")
	}
	c := exec.CommandContext(t.Context(), man, "--warnings=w", "-l", filepath.Join(write(t), "man/man1/tool-keep.1"))
	c.Env = append(os.Environ(), "MANWIDTH=80", "MANROFFOPT=", "LC_ALL=C.UTF-8")
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--in DIR") || !strings.Contains(string(out), ".dots 'and' \\n") ||
		strings.Contains(string(out), "warning") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestCompletions has bash read its completions.
func TestCompletions(t *testing.T) {
	t.Parallel()
	dir := write(t)
	for _, file := range []string{"zsh/vendor-completions/_tool", "fish/vendor_completions.d/tool.fish"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	out, err := exec.CommandContext(t.Context(), bash, "-c",
		". "+filepath.Join(dir, "bash-completion/completions/tool")+" && complete -p tool").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "__start_tool tool") {
		t.Errorf("%v\n%s", err, out)
	}
}
