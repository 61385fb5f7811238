//go:build unix

package localpg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// places are where packages install PostgreSQL: Debian, Fedora and the PGDG
// packages, a build from source, Homebrew on both kinds of Mac, Postgres.app.
var places = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/local/pgsql/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

const installHint = `install it and start again:
  Debian, Ubuntu:  apt install postgresql
  Fedora:          dnf install postgresql-server
  macOS:           brew install postgresql@17
or set DATABASE_URL to your own database, or PROOFLINE_PG_BIN to the directory of initdb and postgres`

// installation is a directory with initdb and postgres of one major version.
type installation struct {
	dir   string
	major int
}

func (i installation) String() string {
	return fmt.Sprintf("PostgreSQL %d in %s", i.major, i.dir)
}

// installations returns what is installed, newest first. An explicit directory
// excludes all others and must hold a PostgreSQL.
func installations(ctx context.Context, binDir string) ([]installation, error) {
	if binDir = cmp.Or(binDir, os.Getenv("PROOFLINE_PG_BIN")); binDir != "" {
		i, err := inspect(ctx, binDir)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoBinaries, err)
		}
		return []installation{i}, nil
	}
	var found []installation
	for _, dir := range candidates() {
		if i, err := inspect(ctx, dir); err == nil {
			found = append(found, i)
		}
	}
	slices.SortStableFunc(found, func(a, b installation) int { return b.major - a.major })
	return found, nil
}

// candidates returns the directories to look into, the one in PATH first.
func candidates() []string {
	var dirs []string
	if path, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, pattern := range places {
		matches, _ := filepath.Glob(pattern) // the patterns are well formed
		for _, dir := range matches {
			if !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

var versionLine = regexp.MustCompile(`^postgres \(PostgreSQL\) (\d+)`)

// inspect reads the version of the PostgreSQL in dir.
func inspect(ctx context.Context, dir string) (installation, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return installation{}, err
	}
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return installation{}, fmt.Errorf("find PostgreSQL: %w", err)
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output() //nolint:gosec // the operator says what to run
	if err != nil {
		return installation{}, fmt.Errorf("ask %s/postgres for its version: %w", dir, err)
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return installation{}, fmt.Errorf("ask %s/postgres for its version: got %q", dir, out)
	}
	major, err := strconv.Atoi(string(m[1]))
	return installation{dir, major}, err
}

// pick returns the installation for a cluster of the given major version, or, for a cluster to be
// created (major 0), the newest one.
func pick(found []installation, major int) (installation, error) {
	usable := slices.DeleteFunc(slices.Clone(found), func(i installation) bool { return i.major < MinVersion })
	if len(usable) == 0 {
		return installation{}, noneUsable(found)
	}
	if major == 0 {
		return usable[0], nil
	}
	for _, i := range usable {
		if i.major == major {
			return i, nil
		}
	}
	if usable[0].major < major {
		return installation{}, fmt.Errorf("%w: it was made by the newer PostgreSQL %d, but only %s was found: install PostgreSQL %d",
			ErrVersion, major, usable[0], major)
	}
	return installation{}, fmt.Errorf("%w: it was made by PostgreSQL %d, but only %s was found: install PostgreSQL %d, "+
		"or move the data with pg_upgrade", ErrVersion, major, list(usable), major)
}

func noneUsable(found []installation) error {
	if len(found) == 0 {
		return fmt.Errorf("%w: %s", ErrNoBinaries, installHint)
	}
	return fmt.Errorf("%w: found %s, but version %d or newer is needed: %s", ErrNoBinaries, list(found), MinVersion,
		installHint)
}

func list(found []installation) string {
	names := make([]string, len(found))
	for i, f := range found {
		names[i] = f.String()
	}
	return strings.Join(names, " and ")
}

// errNoVersion is returned by readVersion when the file PG_VERSION is missing.
var errNoVersion = errors.New("no PG_VERSION")

// readVersion returns the major version that made the cluster in dir.
func readVersion(dir string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dir, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, errNoVersion
	}
	if err != nil {
		return 0, fmt.Errorf("read version of cluster: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("%w: PG_VERSION in %s holds %q", ErrNotCluster, dir, text)
	}
	return major, nil
}
