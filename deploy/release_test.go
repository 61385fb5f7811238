package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// release completes a release of stand-ins for the programs, and returns its directory.
func release(t *testing.T, share, key, signers string) (dist string, err error) {
	t.Helper()
	dist = t.TempDir()
	for _, name := range []string{"linux-amd64", "linux-arm64", "darwin-arm64"} {
		for _, program := range []string{"proofline-", "proofline-verify-"} {
			if err := os.WriteFile(filepath.Join(dist, program+name), []byte("#!/bin/sh\n# "+name+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := exec.CommandContext(t.Context(), "../internal/tools/release.sh", "v0.1.0", dist, share, key)
	c.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000", "SIGNERS="+signers, "DEB_LEVEL=0")
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		return string(out), err
	}
	return dist, nil
}

// TestRelease makes a release twice, and verifies it as UPGRADES.md says.
func TestRelease(t *testing.T) {
	t.Parallel()
	keygen := tool(t, "ssh-keygen")
	tool(t, "dpkg-deb")
	dir, share := t.TempDir(), filepath.Join(t.TempDir(), "share")
	for _, name := range []string{"proofline", "proofline-verify"} {
		run(t, nil, program(t, name), "manual", share)
	}
	key, signers := filepath.Join(dir, "key"), filepath.Join(dir, "allowed_signers")
	run(t, nil, keygen, "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", key)
	if err := os.WriteFile(signers, []byte(read(t, "allowed_signers")), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := release(t, share, key, signers)
	line := "releases namespaces=\"proofline-release\" " + strings.TrimSuffix(read(t, key+".pub"), " test\n")
	if err == nil || !strings.Contains(said, line+"\n") {
		t.Fatalf("an unknown key signs, or the error does not give its line: %v\n%s", err, said)
	}
	if err := os.WriteFile(signers, []byte(read(t, "allowed_signers")+line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	first, err := release(t, share, key, signers)
	if err != nil {
		t.Fatal(err)
	}
	second, err := release(t, share, key, signers)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"SHA256SUMS", "SHA256SUMS.sig"} {
		if read(t, filepath.Join(first, name)) != read(t, filepath.Join(second, name)) {
			t.Errorf("%s differs between two builds", name)
		}
	}
	sums := read(t, filepath.Join(first, "SHA256SUMS"))
	for _, want := range []string{"proofline-0.1.0-darwin-arm64.tar.gz", "proofline-0.1.0-linux-arm64.tar.gz", "proofline_0.1.0_amd64.deb",
		"proofline_0.1.0_arm64.deb", "proofline-chart-0.1.0.tgz", "proofline-compose-0.1.0.tar.gz"} {
		if !strings.Contains(sums, "  "+want+"\n") {
			t.Errorf("the release has no %s:\n%s", want, sums)
		}
	}
	listing := run(t, nil, "tar", "-tzf", filepath.Join(first, "proofline-0.1.0-linux-amd64.tar.gz"))
	for _, want := range []string{"proofline", "proofline-verify", "LICENSE", "share/man/man1/proofline.1", "systemd/proofline.service",
		"share/bash-completion/completions/proofline"} {
		if !strings.Contains(listing, "proofline-0.1.0-linux-amd64/"+want+"\n") {
			t.Errorf("the archive has no %s:\n%s", want, listing)
		}
	}
	chart := run(t, nil, "tar", "-xzOf", filepath.Join(first, "proofline-chart-0.1.0.tgz"), "proofline/Chart.yaml")
	if !strings.Contains(chart, "\nversion: 0.1.0\nappVersion: 0.1.0\n") {
		t.Errorf("the chart is of another version:\n%s", chart)
	}
	checkSignature(t, first, signers)
}

// checkSignature runs the commands that UPGRADES.md gives, before and after a change of the release.
func checkSignature(t *testing.T, dist, signers string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dist, "allowed_signers"), []byte(read(t, signers)), 0o600); err != nil {
		t.Fatal(err)
	}
	verify := func() error {
		for _, line := range commands(t, "../docs/operate/UPGRADES.md", "SHA256SUMS") {
			c := exec.CommandContext(t.Context(), "sh", "-ec", line)
			c.Dir = dist
			if out, err := c.CombinedOutput(); err != nil {
				t.Logf("$ %s\n%s", line, out)
				return err
			}
		}
		return nil
	}
	if err := verify(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"proofline_0.1.0_amd64.deb", "SHA256SUMS"} {
		path := filepath.Join(dist, name)
		before := read(t, path)
		if err := os.WriteFile(path, []byte(strings.Replace(before, "0", "1", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if verify() == nil {
			t.Errorf("a changed %s is verified", name)
		}
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
