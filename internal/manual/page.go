package manual

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// page renders a command's page as roff with the man macros.
func (p Program) page(c *cobra.Command) string {
	var b strings.Builder
	name := pageName(c)
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"Proofline\" \"User Commands\"\n", roff(strings.ToUpper(name)))
	b.WriteString(".nh\n.ad l\n.SH NAME\n")
	fmt.Fprintf(&b, "%s \\- %s\n.SH SYNOPSIS\n", roff(name), roff(c.Short))
	if c.Runnable() && len(shown(c)) == 0 {
		fmt.Fprintf(&b, "\\fB%s\\fR\n", roff(c.UseLine()))
	} else {
		fmt.Fprintf(&b, "\\fB%s\\fR \\fICOMMAND\\fR [flags]\n", roff(c.CommandPath()))
	}
	b.WriteString(".SH DESCRIPTION\n")
	if c.Long != "" {
		writeText(&b, c.Long)
	} else {
		writeText(&b, c.Short+".")
	}
	if list := shown(c); len(list) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range list {
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fR(1)\n%s\n", roff(pageName(sub)), roff(sub.Short))
		}
	}
	writeFlags(&b, "OPTIONS", c.NonInheritedFlags())
	writeFlags(&b, "OPTIONS OF THE COMMANDS ABOVE", c.InheritedFlags())
	if c.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(c.Example))
	}
	p.writeEnd(&b, c)
	return b.String()
}

// writeEnd writes the sections that all pages share.
func (p Program) writeEnd(b *strings.Builder, c *cobra.Command) {
	if len(p.Exit) > 0 {
		b.WriteString(".SH EXIT STATUS\n")
		for code, meaning := range p.Exit {
			fmt.Fprintf(b, ".TP\n%d\n%s\n", code, roff(meaning))
		}
	}
	var related []string
	if c.HasParent() {
		related = append(related, pageName(c.Parent()))
		for _, sibling := range shown(c.Parent()) {
			if sibling != c {
				related = append(related, pageName(sibling))
			}
		}
	}
	for i, name := range related {
		related[i] = fmt.Sprintf("\\fB%s\\fR(1)", roff(name))
	}
	if len(related) > 0 {
		fmt.Fprintf(b, ".SH SEE ALSO\n%s\n", strings.Join(related, ",\n"))
	}
}

// writeText writes paragraphs; indented lines stay as they are.
func writeText(b *strings.Builder, text string) {
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		if strings.HasPrefix(paragraph, " ") {
			fmt.Fprintf(b, ".PP\n.nf\n%s\n.fi\n", roff(paragraph))
			continue
		}
		fmt.Fprintf(b, ".PP\n%s\n", roff(paragraph))
	}
}

// unset lists the defaults that need no mention.
var unset = []string{"", "0", "0s", "false", "[]"}

func writeFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		names := "\\-\\-" + roff(f.Name)
		if f.Shorthand != "" {
			names = "\\-" + f.Shorthand + ", " + names
		}
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR", names)
		if value != "" {
			fmt.Fprintf(b, " \\fI%s\\fR", roff(value))
		}
		fmt.Fprintf(b, "\n%s", roff(usage))
		if !slices.Contains(unset, f.DefValue) {
			fmt.Fprintf(b, " (default %s)", roff(f.DefValue))
		}
		b.WriteString("\n")
	})
}

// escapes are the characters that roff would interpret.
var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "~", `\(ti`, "^", `\(ha`, "`", `\(ga`, "'", `\(aq`)

// roff escapes a text. A line that begins with a control character gets a zero-width one before it.
func roff(text string) string {
	lines := strings.Split(escapes.Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
