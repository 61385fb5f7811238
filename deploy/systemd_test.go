package deploy_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// settings maps each file of settings to the command that reads it.
var settings = map[string][]string{
	"serve.env": {"proofline", "serve"}, "proxy.env": {"proofline", "proxy"},
	"issuer.env": {"proofline", "issuer", "serve"}, "witness.env": {"proofline-verify", "witness"},
}

// assignment matches a variable that a file of settings sets, or shows in a comment.
var assignment = regexp.MustCompile(`(?m)^#?([A-Z_]+)=`)

// TestUnits checks that units and files of settings name flags and variables that exist.
func TestUnits(t *testing.T) {
	t.Parallel()
	units, err := filepath.Glob("systemd/*.service")
	if err != nil || len(units) != len(settings) {
		t.Fatalf("%q: %v", units, err)
	}
	for _, unit := range units {
		text := read(t, unit)
		start := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/(.+)$`).FindStringSubmatch(text)
		file := regexp.MustCompile(`(?m)^EnvironmentFile=-?/etc/proofline/(.+)$`).FindStringSubmatch(text)
		if start == nil || file == nil {
			t.Errorf("%s starts nothing, or has no settings", unit)
			continue
		}
		line := strings.Fields(start[1])
		checkFlags(t, unit, line)
		command := settings[file[1]]
		reloads := strings.Contains(text, "\nExecReload=/bin/kill -HUP $MAINPID\n")
		if reloads != (command[0] == "proofline") { // a witness reads its files by itself, and ends on SIGHUP
			t.Errorf("%s reloads: %t", unit, reloads)
		}
		if strings.Join(commandOf(line), " ") != strings.Join(command, " ") {
			t.Errorf("%s starts %q, and %s is for %q", unit, line, file[1], command)
		}
		for _, set := range assignment.FindAllStringSubmatch(read(t, "systemd/"+file[1]), -1) {
			if !strings.Contains(start[1], "${"+set[1]+"}") {
				checkVariable(t, file[1], set[1], command...)
			}
		}
		for _, set := range regexp.MustCompile(`(?m)^Environment=(\w+)=`).FindAllStringSubmatch(text, -1) {
			checkVariable(t, unit, set[1], command...)
		}
		user := regexp.MustCompile(`(?m)^User=(.+)$`).FindStringSubmatch(text)
		if user == nil || !regexp.MustCompile(`(?m)^u `+user[1]+` `).MatchString(read(t, "systemd/sysusers.conf")) ||
			!strings.Contains(text, "\nStateDirectory="+user[1]+"\n") {
			t.Errorf("%s runs as %q, which has no entry in sysusers.conf or no directory", unit, user)
		}
	}
}

// maxExposure is the highest acceptable result of systemd-analyze security.
const maxExposure = 2.0

func TestUnitsAreHardened(t *testing.T) {
	t.Parallel()
	analyze := tool(t, "systemd-analyze")
	units, err := filepath.Glob("systemd/*.service")
	if err != nil || len(units) == 0 {
		t.Fatal(err)
	}
	for _, unit := range units {
		out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--no-pager", unit).CombinedOutput()
		if strings.Contains(string(out), "unrecognized option") {
			t.Skip("systemd-analyze is too old for --offline")
		}
		found := regexp.MustCompile(`exposure level for \S+: ([0-9.]+)`).FindStringSubmatch(string(out))
		if err != nil || found == nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if level, err := strconv.ParseFloat(found[1], 64); err != nil || level >= maxExposure {
			t.Errorf("the exposure level of %s is %s, want less than %g", unit, found[1], maxExposure)
		}
	}
}
