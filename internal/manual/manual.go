// Package manual writes a program's manual pages and shell completions from its commands, for
// packages to install.
package manual

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// Program describes what its commands do not.
type Program struct {
	Exit    []string          // meanings of the exit codes, from 0
	Replace *strings.Replacer // makes texts independent of who runs the program; nil: they are
}

// Command returns the hidden command that writes the manual of the program it is added to.
func (p Program) Command() *cobra.Command {
	return &cobra.Command{
		Use:    "manual DIR",
		Short:  "Write manual pages and completions below DIR, which has the layout of /usr/share",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE:   func(c *cobra.Command, args []string) error { return p.write(c.Root(), args[0]) },
	}
}

// write writes one page per command, and the completions.
func (p Program) write(root *cobra.Command, dir string) error {
	files := map[string][]byte{}
	p.pages(root, files)
	name := root.Name()
	for path, generate := range map[string]func(*bytes.Buffer) error{
		"bash-completion/completions/" + name: func(b *bytes.Buffer) error {
			return root.GenBashCompletionV2(b, true)
		},
		"zsh/vendor-completions/_" + name: func(b *bytes.Buffer) error { return root.GenZshCompletion(b) },
		"fish/vendor_completions.d/" + name + ".fish": func(b *bytes.Buffer) error {
			return root.GenFishCompletion(b, true)
		},
	} {
		var b bytes.Buffer
		if err := generate(&b); err != nil {
			return err
		}
		files[path] = b.Bytes()
	}
	for path, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // public documents
			return err
		}
		if err := os.WriteFile(file, text, 0o644); err != nil { //nolint:gosec // public documents
			return fmt.Errorf("write manual: %w", err)
		}
	}
	return nil
}

// pages renders a command and those below it.
func (p Program) pages(c *cobra.Command, files map[string][]byte) {
	text := p.page(c)
	if p.Replace != nil {
		text = p.Replace.Replace(text)
	}
	files["man/man1/"+pageName(c)+".1"] = []byte(text)
	for _, sub := range shown(c) {
		p.pages(sub, files)
	}
}

// shown returns the subcommands that have a page.
func shown(c *cobra.Command) (list []*cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "completion" && sub.Name() != "help" {
			list = append(list, sub)
		}
	}
	return list
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }
