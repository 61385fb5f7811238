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

// build builds the binaries of the working tree in dir, and those of a commit unless it is empty.
func build(ctx context.Context, dir, commit string) (head version, base *version, err error) {
	say("building")
	head = version{"head", filepath.Join(dir, "bin")}
	if err := compile(ctx, ".", head.bin); err != nil {
		return head, nil, fmt.Errorf("build the binaries (run this from the top of the repository): %w", err)
	}
	if commit == "" {
		return head, nil, nil
	}
	say("building %s", commit)
	base = &version{"base", filepath.Join(dir, "base-bin")}
	if err := buildCommit(ctx, filepath.Join(dir, "base"), commit, base.bin); err != nil {
		return head, nil, fmt.Errorf("build %s: %w", commit, err)
	}
	return head, base, nil
}

// buildCommit builds a commit in a temporary worktree at tree. The commit gets the pages of the
// working tree, because building its own would require npm, and measurements that compare commits
// load no pages.
func buildCommit(ctx context.Context, tree, commit, bin string) (err error) {
	if err := command(ctx, ".", "git", "worktree", "add", "--quiet", "--detach", tree, commit).Run(); err != nil {
		return err
	}
	defer func() {
		remove := exec.CommandContext(context.WithoutCancel(ctx), "git", "worktree", "remove", "--force", tree)
		remove.Stderr = os.Stderr
		err = errors.Join(err, remove.Run())
	}()
	built := filepath.Join(tree, pagesBuilt)
	if err := os.CopyFS(built, os.DirFS(pagesBuilt)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return compile(ctx, tree, bin)
}

// compile builds the programs of a source tree.
func compile(ctx context.Context, tree, bin string) error {
	if err := os.MkdirAll(bin, 0o755); err != nil { //nolint:gosec // like bench.dir
		return err
	}
	return command(ctx, tree, "go", "build", "-buildvcs=false", "-o", bin, "./cmd/...").Run()
}

func command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // git and go
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	return cmd
}
