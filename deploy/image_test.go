package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// containers runs podman, with what works inside of other containers too.
type containers struct {
	t     *testing.T
	flags []string
	env   []string
}

func podman(t *testing.T) containers {
	t.Helper()
	tool(t, "podman")
	dir := t.TempDir()
	config := filepath.Join(dir, "containers.conf")
	limits := "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n"
	if err := os.WriteFile(config, []byte(limits), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "file",
		"--root", dir + "/root", "--runroot", dir + "/runroot", "--tmpdir", dir + "/tmp"}
	if runc, err := exec.LookPath("runc"); err == nil { // crun refuses some machines' control groups
		flags = append(flags, "--runtime", runc)
	}
	return containers{t, flags, []string{"CONTAINERS_CONF=" + config}}
}

func (c containers) run(args ...string) string {
	c.t.Helper()
	return run(c.t, c.env, "podman", slices.Concat(c.flags, args)...)
}

// TestImage builds the image and starts it with a read-only file system against a PostgreSQL outside of it, which has the
// roles of the compose file. Visitors join, and the health check passes.
func TestImage(t *testing.T) {
	t.Parallel()
	slow(t)
	c := podman(t)
	secrets := makeSecrets(t)
	pgpass := filepath.Join(secrets, "pgpass")
	port := database(t, pgpass)
	text := strings.ReplaceAll(read(t, pgpass), "db:5432:", "127.0.0.1:"+port+":")
	given := filepath.Join(t.TempDir(), "pgpass")
	if err := os.WriteFile(given, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, c.env, "make", "-C", "..", "image", "ENGINE=podman", "ENGINE_FLAGS="+strings.Join(c.flags, " "),
		"BUILD_FLAGS=--isolation chroot --network host", "IMAGE=localhost/proofline:test")
	const image = "localhost/proofline:test"
	about := c.run("image", "inspect", "--format", "{{.User}} {{.Config.Healthcheck.Test}}", image)
	if about != "65532:65532 [CMD /usr/bin/proofline health]\n" {
		t.Errorf("the image has user and health check %q", about)
	}
	data := t.TempDir()
	run(t, nil, "chown", "65532:65532", data)
	options := []string{"run", "--network", "host", "--no-healthcheck", "--read-only", "--cap-drop", "ALL", "--volume", data + ":/data"}
	c.run(slices.Concat(options, []string{"--rm", image, "master-key", "/data/master-key"})...)
	listen := freePort(t)
	url := "postgres://proofline_%s@127.0.0.1:" + port + "/proofline?passfile=/run/secrets/pgpass"
	c.run(slices.Concat(options, []string{"--detach", "--name", "server", "--volume", given + ":/run/secrets/pgpass:ro",
		"--env", "PROOFLINE_ADDR=127.0.0.1:" + listen, "--env", "PROOFLINE_BEACON_RELAYS=none", "--env", "PROOFLINE_MASTER_KEY=/data/master-key",
		"--env", "PROOFLINE_DATABASE_URL=" + fmt.Sprintf(url, "server"), "--env", "PROOFLINE_OWNER_DATABASE_URL=" + fmt.Sprintf(url, "owner"), image})...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.run("logs", "server"))
		}
		c.run("rm", "--force", "--time", "20", "server")
	})
	server := "http://127.0.0.1:" + listen
	awaitReady(t, server, func() string {
		if c.run("inspect", "--format", "{{.State.Running}}", "server") != "true\n" {
			return "the container ended"
		}
		return ""
	})
	firstJoin(t, server, filepath.Join(data, "admin-token"))
	if said := c.run("exec", "server", "/usr/bin/proofline", "health"); !strings.Contains(said, `"status":"ok"`) {
		t.Errorf("the health check says %q", said)
	}
	pid := strings.TrimSpace(c.run("inspect", "--format", "{{.State.Pid}}", "server"))
	status := read(t, "/proc/"+pid+"/status")
	if !strings.Contains(status, "\nUid:\t65532\t65532\t65532\t65532\n") || !strings.Contains(status, "\nCapEff:\t0000000000000000\n") {
		t.Errorf("the server runs as\n%s", status)
	}
	if mounts := read(t, "/proc/"+pid+"/mounts"); !strings.Contains(mounts, " / ") || !strings.Contains(mounts, " ro,") {
		t.Errorf("its file system is not read-only:\n%s", mounts)
	}
	if logs := c.run("logs", "server"); strings.Contains(logs, "could change its transcripts") {
		t.Errorf("the server has more rights than it needs:\n%s", logs)
	}
}
