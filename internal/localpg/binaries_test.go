//go:build unix

package localpg

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestVersions(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"99", "12", "9.6"} {
		dir := dataDir(t)
		if err := os.WriteFile(filepath.Join(dir, "postgres", "PG_VERSION"), []byte(version+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		want := ErrVersion
		if version == "9.6" {
			want = ErrNotCluster
		}
		_, err := Start(t.Context(), Config{Dir: dir})
		if !errors.Is(err, want) || !strings.Contains(err.Error(), version) {
			t.Errorf("cluster of version %s: %v, want %v", version, err, want)
		}
	}
}

func TestNotCluster(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	precious := filepath.Join(dir, "postgres", "precious.txt")
	if err := os.Mkdir(filepath.Dir(precious), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Config{Dir: dir})
	if !errors.Is(err, ErrNotCluster) || !strings.Contains(err.Error(), "precious.txt") {
		t.Errorf("got %v, want ErrNotCluster", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

func TestPick(t *testing.T) {
	t.Parallel()
	found := func(majors ...int) (all []installation) {
		for _, m := range majors {
			all = append(all, installation{fmt.Sprintf("/pg/%d", m), m})
		}
		return all
	}
	for _, test := range []struct {
		found   []installation
		cluster int
		want    int
		err     error
		text    string
	}{
		{found(17, 16, 15), 0, 17, nil, ""},
		{found(17, 16, 15), 16, 16, nil, ""},
		{found(17, 15, 13), 15, 15, nil, ""},
		{found(14, 13), 0, 0, ErrNoBinaries, "PostgreSQL 14 in /pg/14 and PostgreSQL 13 in /pg/13, but version 15"},
		{found(), 0, 0, ErrNoBinaries, "apt install postgresql"},
		{found(16), 17, 0, ErrVersion, "made by the newer PostgreSQL 17, but only PostgreSQL 16 in /pg/16"},
		{found(17), 16, 0, ErrVersion, "made by PostgreSQL 16, but only PostgreSQL 17 in /pg/17"},
	} {
		given := slices.Clone(test.found)
		got, err := pick(test.found, test.cluster)
		if got.major != test.want || !errors.Is(err, test.err) {
			t.Errorf("pick(%v, %d) = %v, %v, want %d, %v", test.found, test.cluster, got, err, test.want, test.err)
		}
		if err != nil && !strings.Contains(err.Error(), test.text) {
			t.Errorf("pick(%v, %d): %v, want it to say %q", test.found, test.cluster, err, test.text)
		}
		if !slices.Equal(given, test.found) {
			t.Errorf("pick changed %v to %v", given, test.found)
		}
	}
}

// fakePostgres makes a directory of programs that only print their version.
func fakePostgres(t *testing.T, versionLine string) string {
	t.Helper()
	dir := tempDir(t)
	for _, name := range []string{"initdb", "postgres"} {
		script := "#!/bin/sh\necho '" + versionLine + "'\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestBinaries(t *testing.T) {
	real, err := installations(t.Context(), "")
	if err != nil || len(real) == 0 {
		t.Fatalf("installations = %v, %v", real, err)
	}
	old := fakePostgres(t, "postgres (PostgreSQL) 14.9 (Debian 14.9-1)")
	next := fakePostgres(t, "postgres (PostgreSQL) 99beta1")
	other := fakePostgres(t, "mysqld 8.0")
	for _, test := range []struct {
		name, path, env, config string
		want                    string // directory, or part of the text of ErrNoBinaries
	}{
		{"installed", os.Getenv("PATH"), "", "", real[0].dir},
		{"PATH", next + ":/usr/bin:/bin", "", "", next},
		{"environment", next, real[0].dir, "", real[0].dir},
		{"configuration", next, old, real[0].dir, real[0].dir},
		{"old", "", old, "", "PostgreSQL 14"},
		{"other", "", other, "", "mysqld"},
		{"empty", "", tempDir(t), "", "initdb"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("PATH", test.path)
			t.Setenv("PROOFLINE_PG_BIN", test.env)
			c := cluster{dir: filepath.Join(tempDir(t), "postgres")}
			err := c.choose(t.Context(), test.config)
			if c.bin.dir == test.want && err == nil {
				return
			}
			if !errors.Is(err, ErrNoBinaries) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("choose = %v, %v, want %s", c.bin, err, test.want)
			}
		})
	}
}
