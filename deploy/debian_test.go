package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// buildDeb builds a package of the version from stand-ins for the programs, or from those in dir.
func buildDeb(t *testing.T, version, programs, out string) (file string) {
	t.Helper()
	share := t.TempDir()
	if programs == "" {
		programs = t.TempDir()
		for _, name := range []string{"proofline", "proofline-verify"} {
			if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"proofline", "proofline-verify"} {
		run(t, nil, program(t, name), "manual", share)
	}
	return strings.TrimSpace(run(t, []string{"SOURCE_DATE_EPOCH=1700000000", "DEB_LEVEL=0"}, "debian/build.sh", version, "amd64", programs, share, out))
}

// TestDebReproducible builds a package twice.
func TestDebReproducible(t *testing.T) {
	t.Parallel()
	deb := tool(t, "dpkg-deb")
	first := buildDeb(t, "v0.1.0", "", t.TempDir())
	second := buildDeb(t, "v0.1.0", "", t.TempDir())
	if filepath.Base(first) != "proofline_0.1.0_amd64.deb" || read(t, first) != read(t, second) {
		t.Errorf("%s and %s differ", first, second)
	}
	listing := run(t, nil, deb, "--contents", first)
	for _, want := range []string{
		"drwxr-xr-x root/root         0 2023-11-14 22:13 ./\n", "-rw------- root/root", "./etc/proofline/serve.env\n",
		"./usr/lib/systemd/system/proofline-witness.service\n", "./usr/lib/sysusers.d/proofline.conf\n",
		"./usr/share/man/man1/proofline-room-create.1.gz\n", "./usr/share/man/man1/proofline-verify-audit.1.gz\n",
		"./usr/share/bash-completion/completions/proofline-verify\n", "./usr/share/zsh/vendor-completions/_proofline\n",
	} {
		if !strings.Contains(listing, want) {
			t.Errorf("no %q in\n%s", want, listing)
		}
	}
	conffiles := run(t, nil, deb, "--info", first, "conffiles")
	if conffiles != "/etc/proofline/issuer.env\n/etc/proofline/proxy.env\n/etc/proofline/serve.env\n/etc/proofline/witness.env\n" {
		t.Errorf("conffiles:\n%s", conffiles)
	}
}

// TestDebVersions: versions sort as the tags do.
func TestDebVersions(t *testing.T) {
	t.Parallel()
	dpkg, deb := tool(t, "dpkg"), tool(t, "dpkg-deb")
	previous := ""
	for _, version := range []string{"6a15d924", "v0.1.0-rc.1", "v0.1.0-rc.1-3-g6a15d924", "v0.1.0", "v0.1.0-2-g6a15d924", "v0.1.1"} {
		got := strings.TrimSpace(run(t, nil, deb, "--field", buildDeb(t, version, "", t.TempDir()), "Version"))
		if previous != "" {
			run(t, nil, dpkg, "--compare-versions", previous, "lt", got)
		}
		previous = got
	}
}

// TestDebInstalls installs the package in a copy of this machine, starts the server as the unit's user, has visitors
// join, and removes the package.
func TestDebInstalls(t *testing.T) {
	t.Parallel()
	slow(t)
	tool(t, "dpkg-deb")
	if os.Geteuid() != 0 {
		t.Skip("only root can make a copy of this machine")
	}
	root := overlay(t)
	in := func(args ...string) string { return run(t, nil, "chroot", append([]string{root}, args...)...) }
	file := buildDeb(t, "v0.1.0", filepath.Dir(program(t, "proofline")), filepath.Join(root, "srv"))
	said := in("dpkg", "--install", "/srv/"+filepath.Base(file))
	if !strings.Contains(said, "systemctl enable --now proofline") {
		t.Errorf("it does not say what is next:\n%s", said)
	}
	for directory, want := range map[string]string{"/var/lib/proofline": "700 proofline proofline\n",
		"/var/lib/proofline-witness": "700 proofline-witness proofline-witness\n"} {
		if got := in("stat", "--format=%a %U %G", directory); got != want {
			t.Errorf("%s is %q, want %q", directory, got, want)
		}
	}
	in("man", "--where", "proofline-serve")
	server := "http://127.0.0.1:" + freePort(t)
	serve := exec.Command("chroot", "--userspec=proofline:proofline", root, "/usr/bin/proofline", "serve")
	serve.Env = []string{"HOME=/var/lib/proofline", "PROOFLINE_DATA=/var/lib/proofline", "PATH=/usr/bin:/bin",
		"PROOFLINE_ADDR=" + strings.TrimPrefix(server, "http://"), "PROOFLINE_BEACON_RELAYS=none"}
	background(t, serve, func(stopped func() string) {
		awaitReady(t, server, stopped)
		firstJoin(t, server, filepath.Join(root, "var/lib/proofline/admin-token"))
	})
	said = in("dpkg", "--purge", "proofline")
	if !strings.Contains(said, "/var/lib/proofline") {
		t.Errorf("it does not say what stays:\n%s", said)
	}
	for path, stays := range map[string]bool{"etc/proofline": false, "usr/bin/proofline": false, "var/lib/proofline/master-key": true} {
		if _, err := os.Stat(filepath.Join(root, path)); (err == nil) != stays {
			t.Errorf("%s after the purge: %v", path, err)
		}
	}
}
