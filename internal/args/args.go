// Package args makes cobra name a command's arguments when their number is wrong: its own message only
// counts them.
package args

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Name changes the errors of a command and of the commands below it. The names are those after the
// command's own name in Use.
func Name(c *cobra.Command) {
	for _, sub := range c.Commands() {
		Name(sub)
	}
	check := c.Args
	_, names, ok := strings.Cut(c.Use, " ")
	if check == nil || !ok {
		return
	}
	c.Args = func(c *cobra.Command, given []string) error {
		err := check(c, given)
		if err == nil || !strings.Contains(err.Error(), "arg(s)") {
			return err
		}
		got := fmt.Sprintf("%d arguments", len(given))
		switch len(given) {
		case 0:
			got = "no argument"
		case 1:
			got = "one argument"
		}
		path := strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
		return fmt.Errorf("%s takes %s, but got %s", path, names, got)
	}
}
