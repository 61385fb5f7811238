package room

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room"
)

// messageFlags are the flags of "room message".
type messageFlags struct {
	length time.Duration
	until  string
	clear  bool
}

func messageCommand(m *remote.Manager) *cobra.Command {
	var f messageFlags
	c := &cobra.Command{
		Use:   "message SLUG [LANGUAGE=TEXT...]",
		Short: "Show a message to all visitors, or remove it",
		Long: `Show a message to all visitors of a room, in one language or several: each is
named by its tag, such as en or pt-BR. Visitors see the text in their language,
or else the first one. The message stays until you remove it, or until the
given time. The transcript records its hash. Without a text, print the current
message.`,
		Example: `  proofline room message sale en="The shop is slow. Your place is safe." --for 30m
  proofline room message sale en="We start late." de="Wir fangen später an." --until 2030-05-01T12:30:00Z
  proofline room message sale
  proofline room message sale --clear`,
		Args: cobra.MinimumNArgs(1),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			body, err := f.body(args[1:])
			switch {
			case err != nil:
				return err
			case body == nil:
				return showMessage(m, c, http.MethodGet, args[0], nil)
			}
			return showMessage(m, c, http.MethodPatch, args[0], body)
		}),
	}
	flags := c.Flags()
	flags.DurationVar(&f.length, "for", 0, "show the message for this `DURATION`, such as 30m")
	flags.StringVar(&f.until, "until", "", "show the message until this `TIME`")
	flags.BoolVar(&f.clear, "clear", false, "remove the message")
	c.MarkFlagsMutuallyExclusive("for", "until", "clear")
	return c
}

// body returns the request body; nil: show the message without changing it.
func (f *messageFlags) body(args []string) ([]byte, error) {
	switch {
	case f.clear && len(args) > 0:
		return nil, cli.Usage(errors.New("--clear takes no text"), "give a text, or --clear")
	case f.clear:
		return []byte(`{"message":null}`), nil
	case len(args) == 0 && (f.length != 0 || f.until != ""):
		return nil, cli.Usage(errors.New("a text is missing"),
			`give one with its language, such as en="The shop is slow."`)
	case len(args) == 0:
		return nil, nil
	}
	texts, first := map[string]string{}, ""
	for _, arg := range args {
		tag, text, ok := strings.Cut(arg, "=")
		if _, twice := texts[tag]; !ok || twice {
			return nil, cli.Usage(fmt.Errorf("%q is not LANGUAGE=TEXT, or repeats a language", arg),
				`give each text with its language, such as en="The shop is slow."`)
		}
		if first == "" {
			first = tag
		}
		texts[tag] = text
	}
	message := map[string]any{"default": first, "texts": texts}
	if f.length != 0 {
		message["for"] = f.length.String()
	}
	if f.until != "" {
		message["until"] = f.until
	}
	return json.Marshal(map[string]any{"message": message})
}

// showMessage sends a request whose answer is the room, and prints the room's message.
func showMessage(m *remote.Manager, c *cobra.Command, method, slug string, body []byte) error {
	var room wire.Room
	raw, err := m.Ask(c, method, roomPath(slug, ""), body, &room)
	if err != nil {
		return err
	}
	rows := messageRows(room.Message)
	if len(rows) == 0 {
		rows = [][]string{{"message", "none"}}
	}
	return m.Print(raw, func() error { return m.PrintTable(rows...) })
}

// messageRows returns table rows about a message, the default text first.
func messageRows(m *room.Message) [][]string {
	if m == nil {
		return nil
	}
	tags := slices.DeleteFunc(slices.Sorted(maps.Keys(m.Texts)), func(tag string) bool { return tag == m.Default })
	var rows [][]string
	for _, tag := range append([]string{m.Default}, tags...) {
		label := "message " + tag
		for line := range strings.SplitSeq(m.Texts[tag], "\n") {
			rows = append(rows, []string{label, line})
			label = ""
		}
	}
	end := "you remove it"
	if m.Until != nil {
		end = localTime(*m.Until)
	}
	return append(rows, []string{"message until", end})
}
