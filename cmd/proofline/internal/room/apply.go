package room

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/cmd/proofline/internal/apply"
	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
	"github.com/proofline/proofline/internal/wire"
)

// applying is one run of "room apply".
type applying struct {
	*remote.Manager
	client *api.Client
	dryRun bool
}

func applyCommand(m *remote.Manager) *cobra.Command {
	var file string
	var dryRun bool
	c := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Create and amend rooms to match a file",
		Long: `Create and amend rooms to match a file: rooms that do not exist are created, and
others are amended where they differ. Members that the file leaves out do not
change. Running it again does nothing.

The file is YAML or JSON, with one room or several separated by ---. Rooms have
the members that "room create" takes, and "host". If the file has a mistake, or
asks for a change that a published room does not allow, nothing is done:

  + room sale: create
  ~ room sale: outflow.per_minute: 60 -> 120
  ! room sale: claim: 5m0s -> 3m0s: cannot change once a room is published
  = room sale: nothing to change`,
		Example: `  proofline room apply -f rooms.yaml --dry-run
  proofline room apply -f - < rooms.yaml

  rooms.yaml:
  slug: sale
  title: Summer sale
  opens: 2030-05-01T11:30:00Z
  starts: 2030-05-01T12:00:00Z
  outflow: {per_minute: 300}
  targets: [https://shop.example.com]`,
		Args: cobra.NoArgs,
		RunE: cli.Runs(func(c *cobra.Command, _ []string) error {
			if file == "" {
				return cli.Usage(errors.New("no file is given"), "give one with -f FILE, or -f - for standard input")
			}
			return applyFile(m, c, file, dryRun)
		}),
	}
	c.Flags().StringVarP(&file, "file", "f", "", "`FILE` of rooms, - for standard input")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "print the changes without making them")
	return c
}

func applyFile(m *remote.Manager, c *cobra.Command, file string, dryRun bool) error {
	text, err := readFile(m, file)
	if err != nil {
		return err
	}
	list, err := apply.Read(bytes.NewReader(text))
	if err != nil {
		return cli.Failed(fmt.Errorf("%s: %w", file, err), "nothing was done")
	}
	client, err := m.Client(c)
	if err != nil {
		return err
	}
	a := &applying{m, client, dryRun}
	steps := make([]apply.Step, len(list))
	for i := range list {
		if steps[i], err = a.compare(c, &list[i]); err != nil {
			return err
		}
	}
	if !m.PrintsJSON() {
		if err := a.printPlan(steps); err != nil {
			return err
		}
	}
	done := a.do(c, steps)
	if m.PrintsJSON() {
		done = errors.Join(m.PrintJSON(map[string]any{"dry_run": dryRun, "rooms": steps}), done)
	}
	return done
}

// compare fetches a room and returns the step that makes it match the file.
func (a *applying) compare(c *cobra.Command, w *apply.Wanted) (apply.Step, error) {
	answer, err := a.client.Do(c.Context(), http.MethodGet, roomPath(w.Config.Slug, ""), nil)
	if err != nil {
		return apply.Step{}, a.Explain(err)
	}
	if problem := answer.Problem(); answer.Status == http.StatusNotFound && problem.Title == "Not found" {
		s, err := apply.Missing(w, time.Now())
		if err != nil {
			return s, cli.Failed(err, "nothing was done")
		}
		return s, nil
	}
	if answer.Status != http.StatusOK {
		return apply.Step{}, a.Explain(answer.Problem())
	}
	var current wire.Room
	if err := remote.Decode(answer.Body, &current); err != nil {
		return apply.Step{}, err
	}
	return apply.Compare(w, current, answer.Header.Get("ETag"))
}

// printPlan prints the steps.
func (a *applying) printPlan(steps []apply.Step) error {
	for _, s := range steps {
		name := "room " + s.Slug
		var err error
		switch s.Action {
		case apply.Create:
			err = a.Printf("+ %s: create\n", name)
		case apply.Keep:
			err = a.Printf("= %s: nothing to change\n", name)
		default:
		}
		for _, d := range s.Changes {
			mark, why := "~", ""
			if !d.Allowed {
				mark, why = "!", ": cannot change once a room is published"
			} else if s.Ended {
				mark, why = "!", ": the room has ended"
			}
			err = errors.Join(err, a.Printf("%s %s: %s%s\n", mark, name, cli.Printable(d.Words()), why))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// do runs the steps in order, up to the first one that fails.
func (a *applying) do(c *cobra.Command, steps []apply.Step) error {
	for _, s := range steps {
		if s.Action == apply.Refuse {
			return cli.Failed(fmt.Errorf("room %s cannot be changed to match the file; nothing was done", s.Slug),
				"undo the changes marked with ! in the file, or publish another room")
		}
	}
	if a.dryRun {
		return nil
	}
	for _, s := range steps {
		if err := a.step(c, s); err != nil {
			return a.Explain(fmt.Errorf("room %s: %w", s.Slug, err))
		}
	}
	return nil
}

// step creates or amends one room. It fails if the room has changed since it was
// compared.
func (a *applying) step(c *cobra.Command, s apply.Step) error {
	method, path, body, client := http.MethodPost, "/v1/rooms", s.Wanted.JSON, *a.client
	switch s.Action {
	case apply.Keep:
		return nil
	case apply.Change:
		method, path, body = http.MethodPatch, roomPath(s.Slug, ""), s.Amendment
		client.Header = a.client.Header.Clone()
		client.Header.Set("If-Match", s.ETag)
	default:
	}
	var room wire.Room
	_, err := client.Call(c.Context(), method, path, body, &room)
	return err
}
