package deploy_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/internal/doctest"
	"go.yaml.in/yaml/v3"
)

// composed is the part of the compose file that the tests know.
type composed struct {
	Name     string
	Services map[string]struct {
		Image       string
		Command     []string
		Environment map[string]string
		DependsOn   any `yaml:"depends_on"`
		Secrets     []string
		Volumes     []string
		Networks    []string
		Ports       []string
		Healthcheck struct {
			Test              []string
			Interval, Timeout string
			Retries           int
		}
		ReadOnly  bool           `yaml:"read_only"`
		CapDrop   []string       `yaml:"cap_drop"`
		CapAdd    []string       `yaml:"cap_add"`
		Security  []string       `yaml:"security_opt"`
		Ulimits   map[string]int `yaml:"ulimits"`
		ShmSize   string         `yaml:"shm_size"`
		StopGrace string         `yaml:"stop_grace_period"`
		Restart   string
	}
	Networks map[string]any
	Volumes  map[string]any
	Secrets  map[string]struct{ File string }
}

func compose(t *testing.T) (c composed) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(read(t, "compose.yaml")))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCompose checks that the compose file names what exists.
func TestCompose(t *testing.T) {
	t.Parallel()
	c := compose(t)
	for name, s := range c.Services {
		for _, volume := range s.Volumes {
			from, _, _ := strings.Cut(volume, ":")
			if _, ok := c.Volumes[from]; ok {
				continue
			}
			if _, err := os.Stat(from); err != nil {
				t.Errorf("%s: volume %s: %v", name, volume, err)
			}
		}
		for _, secret := range s.Secrets {
			if _, ok := c.Secrets[secret]; !ok {
				t.Errorf("%s: there is no secret %s", name, secret)
			}
		}
		for _, network := range s.Networks {
			if _, ok := c.Networks[network]; !ok {
				t.Errorf("%s: there is no network %s", name, network)
			}
		}
		if !slices.Contains(s.Security, "no-new-privileges:true") || s.Restart == "" {
			t.Errorf("%s may get privileges, or is not restarted", name)
		}
	}
	s := c.Services["server"]
	if !slices.Equal(s.Command, []string{"serve"}) || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.Ports) != 0 {
		t.Errorf("the server is %+v", s)
	}
	for variable := range s.Environment {
		checkVariable(t, "compose.yaml", variable, "proofline", "serve")
	}
	containerfile := read(t, "Containerfile")
	for _, set := range regexp.MustCompile(`(?:ENV | )(PROOFLINE_\w+)=`).FindAllStringSubmatch(containerfile, -1) {
		checkVariable(t, "Containerfile", set[1], "proofline", "serve")
	}
	for _, want := range []string{`CMD ["serve"]`, `CMD ["/usr/bin/proofline", "health"]`} {
		if !strings.Contains(containerfile, want) {
			t.Errorf("the Containerfile has no %s", want)
		}
	}
	help(t, "proofline", "health")
}

// TestCaddyfile has Caddy read its configuration, which is that of docs/EDGE.md: web tests it there.
func TestCaddyfile(t *testing.T) {
	t.Parallel()
	text := read(t, "compose/Caddyfile")
	if compose(t).Services["caddy"].Environment["PROOFLINE_HOST"] == "" {
		t.Error("Caddy does not get the host")
	}
	_, config, _ := strings.Cut(text, "\n{\n")
	config = strings.NewReplacer("{$PROOFLINE_HOST}", "queue.example.com", "server:8080", "127.0.0.1:8080").Replace("{\n" + config)
	if want := doctest.Blocks(t, "../docs/EDGE.md", "caddyfile")[0]; config != want {
		t.Errorf("docs/EDGE.md has another configuration:\n%s\nwant\n%s", want, config)
	}
	run(t, []string{"PROOFLINE_HOST=queue.example.com", "HOME=" + t.TempDir()}, tool(t, "caddy"), "adapt", "--adapter", "caddyfile",
		"--config", "compose/Caddyfile")
}

// makeSecrets runs secrets.sh in a copy of its directory.
func makeSecrets(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("compose")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "secrets")); err != nil { // those of the person who runs the tests
		t.Fatal(err)
	}
	run(t, nil, "sh", filepath.Join(dir, "secrets.sh"))
	return filepath.Join(dir, "secrets")
}

// TestSecrets makes the secrets, once.
func TestSecrets(t *testing.T) {
	t.Parallel()
	secrets := makeSecrets(t)
	for _, s := range compose(t).Secrets {
		if _, err := os.Stat(filepath.Join(secrets, filepath.Base(s.File))); err != nil {
			t.Error(err)
		}
	}
	pgpass := filepath.Join(secrets, "pgpass")
	before := read(t, pgpass)
	if !regexp.MustCompile(`^db:5432:proofline:proofline_owner:[0-9a-f]{48}\ndb:5432:proofline:proofline_server:[0-9a-f]{48}\n$`).MatchString(before) {
		t.Error("pgpass does not have two passwords")
	}
	run(t, nil, "sh", filepath.Join(filepath.Dir(secrets), "secrets.sh"))
	if read(t, pgpass) != before {
		t.Error("the second run replaced the passwords")
	}
	if info, err := os.Stat(secrets); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("others may enter the directory of the secrets: %v %v", info, err)
	}
}

// database starts a PostgreSQL on a TCP port, with the roles and passwords of the compose file. It returns the port.
func database(t *testing.T, pgpass string) (port string) {
	t.Helper()
	bins, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(bins) == 0 || os.Geteuid() != 0 {
		t.Skip("this test needs root and Debian's PostgreSQL")
	}
	bin := bins[len(bins)-1]
	dir, err := os.MkdirTemp("", "proofline-db-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	run(t, nil, "chown", "postgres", dir)
	as := func(args ...string) *exec.Cmd {
		c := exec.Command("runuser", append([]string{"-u", "postgres", "--"}, args...)...)
		c.Dir = "/"
		return c
	}
	if out, err := as(bin+"/initdb", "--no-sync", "--auth-host=scram-sha-256", "--auth-local=trust", "-D", dir+"/data").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	port = freePort(t)
	options := "-p " + port + " -k " + dir + " -c listen_addresses=127.0.0.1 -c fsync=off"
	// Without -l the server would keep the test's pipe open.
	if out, err := as(bin+"/pg_ctl", "-D", dir+"/data", "-o", options, "-l", dir+"/log", "-w", "-t", "120", "start").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() { _ = as(bin+"/pg_ctl", "-D", dir+"/data", "-m", "immediate", "-w", "stop").Run() })
	roles := exec.Command("sh", "-s")
	roles.Stdin = bytes.NewBufferString(strings.ReplaceAll(read(t, "compose/roles.sh"), "/run/secrets/pgpass", pgpass))
	roles.Env = append(os.Environ(), "PGHOST="+dir, "PGPORT="+port)
	if out, err := roles.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return port
}
