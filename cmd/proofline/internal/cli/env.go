package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// envKey is the annotation of a flag that the environment can set. Its value lists
// the variables: the first one that is set counts.
const envKey = "environment"

// InEnv allows flags to be set by PROOFLINE_* variables, such as --master-key by
// PROOFLINE_MASTER_KEY.
func InEnv(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		variables := []string{"PROOFLINE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))}
		if name == "database-url" {
			variables = append(variables, "DATABASE_URL") // which hosting platforms set
		}
		f := flags.Lookup(name)
		f.Usage += " [$" + strings.Join(variables, ", $") + "]"
		f.Annotations = map[string][]string{envKey: variables}
	}
}

// FromEnv sets flags that the command line does not set from the environment. It is a PreRunE.
func (t *Terminal) FromEnv(c *cobra.Command, _ []string) (err error) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		for _, variable := range f.Annotations[envKey] {
			value := t.Env(variable)
			if f.Changed || value == "" {
				continue
			}
			if f.Value.Set(value) != nil && err == nil { // the value may be secret, so it is not quoted
				err = fmt.Errorf("the value of %s is not valid for --%s", variable, f.Name)
			}
			return
		}
	})
	return err
}

// DataDir returns the default data directory.
//
// https://specifications.freedesktop.org/basedir-spec/
func (t *Terminal) DataDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/proofline"
	}
	if dir := t.Env("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "proofline")
	}
	if home := t.Env("HOME"); home != "" {
		return filepath.Join(home, ".local", "share", "proofline")
	}
	return "proofline-data"
}
