package deploy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/internal/doctest"
)

const install = "../docs/operate/INSTALL.md"

// commands returns the commands of a document that have a word.
func commands(t *testing.T, file, word string) (list []string) {
	t.Helper()
	for _, block := range doctest.Blocks(t, file, "sh") {
		for _, line := range doctest.Commands(block) {
			if strings.Contains(line, word) {
				list = append(list, line)
			}
		}
	}
	if len(list) == 0 {
		t.Fatalf("%s has no command with %s", file, word)
	}
	return list
}

// TestInstallCommands checks that the document's commands call the programs with flags, and name services, secrets and
// values, that exist. TestDebInstalls, TestImage and TestChart do what it describes.
func TestInstallCommands(t *testing.T) {
	t.Parallel()
	c, checked := compose(t), 0
	for _, line := range commands(t, install, "") {
		line = strings.NewReplacer(`"$(`, "", `)"`, "", "-- ", "", "--from-literal=master-key=", "").Replace(line)
		words := strings.Fields(line)
		if i := slices.Index(words, "compose"); i == 1 {
			if _, ok := c.Services["server"]; !ok || strings.Contains(line, " proofline proofline ") {
				t.Errorf("%s: there is no such service", line)
			}
		}
		at := slices.IndexFunc(words, func(w string) bool { return w == "proofline" || w == "localhost/proofline" })
		switch {
		case strings.HasPrefix(line, "docker compose cp"), strings.HasPrefix(line, "docker compose up"),
			strings.HasPrefix(line, "docker volume"), at < 0, words[0] == "systemctl":
			continue
		case at+1 < len(words) && words[at+1] == "proofline": // the program in the service
			at++
		}
		command := append([]string{"proofline"}, words[at+1:]...)
		if len(command) == 1 {
			command = append(command, "serve")
		}
		if words[0] == "docker" && words[1] == "run" && at < len(words)-1 && words[at+1] != "master-key" {
			continue
		}
		length := 2
		if len(command) > 2 && slices.Contains([]string{"room", "account"}, command[1]) {
			length = 3
		}
		text := help(t, command[:length]...)
		for _, word := range command[length:] {
			if strings.HasPrefix(word, "--") && !strings.Contains(text, " "+word+" ") {
				t.Errorf("%s: %q has no flag %s", line, command[:length], word)
			}
		}
		checked++
	}
	if checked < 5 {
		t.Errorf("checked only %d commands", checked)
	}
	secrets := []string{}
	for _, line := range commands(t, install, "create secret generic") {
		secrets = append(secrets, strings.Fields(line)[6])
	}
	for _, name := range secrets {
		if !strings.Contains(doctest.Blocks(t, install, "yaml")[0], ": "+name+"\n") {
			t.Errorf("values.yaml does not name the secret %s", name)
		}
	}
}

// TestInstallValues renders the chart with the values of the document.
func TestInstallValues(t *testing.T) {
	t.Parallel()
	all := manifests(t, doctest.Blocks(t, install, "yaml")[0])
	server, ok := all["StatefulSet queue-proofline"]
	if !ok || server.Spec.Replicas != 2 || server.Spec.Template.Spec.Containers[0].Image != "registry.example.com/proofline:0.1.0" {
		t.Errorf("the servers are %+v", server.Spec)
	}
}

// TestInstallNames: what the document says about files and services is so.
func TestInstallNames(t *testing.T) {
	t.Parallel()
	text := read(t, install)
	for file := range settings {
		if !strings.Contains(text, "`"+file+"`") && !strings.Contains(text, "/"+file+"`") {
			t.Errorf("INSTALL.md does not name %s", file)
		}
	}
	for _, target := range []string{"make deb", "make image", "make build"} {
		if !strings.Contains(read(t, "../Makefile"), "\n"+strings.TrimPrefix(target, "make ")+":") || !strings.Contains(text, "`"+target+"`") {
			t.Errorf("%s is not a target, or INSTALL.md does not name it", target)
		}
	}
}
