package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// envKey marks a flag that the environment may give; its value is the names
// of the variables, the first that is set counts.
const envKey = "environment"

// inEnv lets flags be given as PROOFLINE_*, --master-key as PROOFLINE_MASTER_KEY.
func inEnv(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		variables := []string{"PROOFLINE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))}
		if name == "database-url" {
			variables = append(variables, "DATABASE_URL") // the name that platforms set
		}
		f := flags.Lookup(name)
		f.Usage += " [$" + strings.Join(variables, ", $") + "]"
		f.Annotations = map[string][]string{envKey: variables}
	}
}

// fromEnv gives flags that are not on the command line what the environment
// says. It is a PreRunE.
func (t *terminal) fromEnv(c *cobra.Command, _ []string) (err error) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		for _, variable := range f.Annotations[envKey] {
			value := t.env(variable)
			if f.Changed || value == "" {
				continue
			}
			if f.Value.Set(value) != nil && err == nil { // the value may be secret
				err = fmt.Errorf("%s cannot be the value of --%s", variable, f.Name)
			}
			return
		}
	})
	return err
}

// dataDir is where a server keeps its data unless it is told.
//
// https://specifications.freedesktop.org/basedir-spec/
func (t *terminal) dataDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/proofline"
	}
	if dir := t.env("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "proofline")
	}
	if home := t.env("HOME"); home != "" {
		return filepath.Join(home, ".local", "share", "proofline")
	}
	return "proofline-data"
}
