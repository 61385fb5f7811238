package main

import (
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofline/proofline/internal/doctest"
)

// TestReadme runs the README's commands in order on its own server, with fewer
// visitors and shorter windows.
func TestReadme(t *testing.T) {
	t.Parallel()
	const readme = "../../README.md"
	makefile := doctest.Read(t, "../../Makefile")
	dir := tempDir(t)
	data := filepath.Join(dir, "data")
	sale := strings.Replace(doctest.Blocks(t, readme, "json")[0], "20s", "1s", 1)
	if err := os.WriteFile(filepath.Join(dir, "sale.json"), []byte(sale), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startServer(t, nil, "--data", data, "--addr", "127.0.0.1:0")
	here := strings.NewReplacer("bin/proofline", "proofline", "http://127.0.0.1:8080", p.url, "./proofline-data", data,
		"--visitors 1000 --rate 50", "--visitors 50 --rate 50")
	ran := 0
	for _, block := range doctest.Blocks(t, readme, "sh") {
		for _, line := range doctest.Commands(block) {
			switch target, isMake := strings.CutPrefix(line, "make "); {
			case isMake && !strings.Contains(makefile, "\n"+target+":"):
				t.Errorf("the README has %q, but the Makefile has no such target", line)
			case isMake, strings.Contains(line, "proofline serve"): // the server above is used instead
			default:
				shell(t, dir, p.url, here.Replace(line))
				ran++
			}
		}
	}
	if ran < 8 {
		t.Errorf("found only %d commands in the README", ran)
	}
	p.stop()
}

func shell(t *testing.T, dir, server, line string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", line)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PROOFLINE_SERVER="+server, "XDG_STATE_HOME="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("$ %s\n%s%v", line, out, err)
	}
}

// TestOrganizersReadme runs the commands in the organizers' documents on its own
// server, which has a sale that is over.
func TestOrganizersReadme(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	data := filepath.Join(dir, "data")
	sale := `{"slug": "evening-concert", "windows": [{"length": "1s"}]}`
	if err := os.WriteFile(filepath.Join(dir, "sale.json"), []byte(sale), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startServer(t, nil, "--data", data, "--addr", "127.0.0.1:0")
	shell(t, dir, p.url, "proofline room create sale.json --data "+data)
	shell(t, dir, p.url, "proofline room end evening-concert --yes --data "+data)
	makeOwner(t, p.url, data)
	here := strings.NewReplacer("bin/proofline", "proofline", "http://127.0.0.1:8080", p.url, "./proofline-data", data)
	ran := 0
	for _, name := range []string{"README", "ACCOUNTS", "SALE"} {
		for _, block := range doctest.Blocks(t, "../../web/console/"+name+".md", "sh") {
			for _, line := range doctest.Commands(block) {
				switch {
				case strings.Contains(line, "proofline serve"): // the server above is used instead
					continue
				case strings.Contains(line, " --list ") || strings.Contains(line, " --nullifiers "):
					continue // needs tickets: testdata/scripts/room.txtar revokes and restores lists
				}
				shell(t, dir, p.url, here.Replace(line))
				ran++
			}
		}
	}
	if ran < 4 {
		t.Errorf("found only %d commands", ran)
	}
	p.stop()
}

// makeOwner creates the account of owner@example.com with an owner link.
func makeOwner(t *testing.T, server, data string) {
	t.Helper()
	link := exec.CommandContext(t.Context(), "proofline", "account", "link", "--data", data, "--email",
		"owner@example.com",
		"--json")
	out, err := link.Output()
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		Link string `json:"link"`
	}
	if err := json.Unmarshal(out, &made); err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	for _, step := range []struct {
		path string
		form url.Values
	}{
		{"/console/invitation", url.Values{"token": {made.Link}}},
		{"/console/invitation/accept", url.Values{
			"organization": {"Halls"}, "email": {"owner@example.com"}, "name": {"Owner"},
			"password": {"a long enough password of a test"},
		}},
	} {
		answer, err := browser.PostForm(server+step.path, step.form)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: status %d", step.path, answer.StatusCode)
		}
	}
}
