package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// pagesBuilt is the directory of the visitor's pages that npm has built. Git ignores it.
const pagesBuilt = "web/ui/dist"

// build builds the binaries of the working tree, and of a base commit unless base is empty.
func (b *bench) build(base string) error {
	b.say("building")
	b.head = version{"head", filepath.Join(b.dir, "bin")}
	if err := b.compile(".", b.head.bin); err != nil {
		return fmt.Errorf("build the binaries (run this from the top of the repository): %w", err)
	}
	if base == "" {
		return nil
	}
	b.say("building %s", base)
	b.base = &version{"base", filepath.Join(b.dir, "base-bin")}
	if err := b.buildBase(base); err != nil {
		return fmt.Errorf("build %s: %w", base, err)
	}
	return nil
}

// buildBase builds a commit in a temporary worktree. The commit gets the pages of the working tree,
// because building its own would require npm, and measurements that compare commits load no pages.
func (b *bench) buildBase(commit string) (err error) {
	tree := filepath.Join(b.dir, "base")
	if err := b.command(".", "git", "worktree", "add", "--quiet", "--detach", tree, commit).Run(); err != nil {
		return err
	}
	defer func() {
		remove := exec.CommandContext(context.WithoutCancel(b.ctx), "git", "worktree", "remove", "--force", tree)
		remove.Stderr = os.Stderr
		err = errors.Join(err, remove.Run())
	}()
	built := filepath.Join(tree, pagesBuilt)
	if err := os.CopyFS(built, os.DirFS(pagesBuilt)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return b.compile(tree, b.base.bin)
}

// compile builds the programs of a source tree.
func (b *bench) compile(tree, bin string) error {
	if err := os.MkdirAll(bin, 0o755); err != nil { //nolint:gosec // like b.dir
		return err
	}
	return b.command(tree, "go", "build", "-buildvcs=false", "-o", bin, "./cmd/...").Run()
}

func (b *bench) command(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(b.ctx, name, args...) //nolint:gosec // git and go
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	return cmd
}
