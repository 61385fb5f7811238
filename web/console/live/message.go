package live

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/branding"
	"github.com/proofline/proofline/web/console/format"
	"github.com/proofline/proofline/web/console/shell"
)

// messageView is the data of the message control.
type messageView struct {
	Live      []messageRow // the current message, default language first
	Until     *time.Time   // the end of the current message; nil: none
	Form      messageForm
	Languages []string       // suggested names
	Ends      []shell.Option // the lengths to choose from
	Focus     int            // row that was just added; -1: none
}

// messageForm is a message as typed.
type messageForm struct {
	Rows  []messageRow // the first row has the default language
	Ends  string       // a length, endsAt, or empty: until it is removed
	Until string       // time of the end, if Ends is endsAt
}

// messageRow is the text in one language, typed as a name or a tag.
type messageRow struct{ Language, Text string }

// endsAt selects a given end.
const endsAt = "at"

// messageEnds are the lengths of a message.
var messageEnds = []shell.Option{
	{Name: "ends", Value: "10m", Label: "For 10 minutes"}, {Name: "ends", Value: "30m", Label: "For 30 minutes"},
	{Name: "ends", Value: "1h", Label: "For 1 hour"},
	{Name: "ends", Value: "", Label: "Until you remove it"}, {Name: "ends", Value: endsAt, Label: "Until a time"},
}

// messageLanguages are the suggested languages, those of the pages first. Others can be typed as tags.
var messageLanguages = append(slices.Clone(branding.Languages),
	"nl", "pl", "tr", "uk", "ru", "ro", "cs", "sk", "hu", "el", "sv", "da", "nb", "fi", "hr", "sr", "sl", "bg", "lt",
	"lv", "et", "ca", "eu", "gl", "ga",
	"he", "fa", "ur", "hi", "bn", "ta", "th", "vi", "id", "ms", "fil", "ko", "zh-Hans", "zh-Hant")

// languageTag returns the tag of a language from its English name, its own name or its tag. Other text
// is returned unchanged.
func languageTag(typed string) string {
	for _, tag := range messageLanguages {
		if strings.EqualFold(typed, format.Language(tag)) ||
			strings.EqualFold(typed, display.Self.Name(language.Make(tag))) {
			return tag
		}
	}
	if tag, err := language.Parse(typed); err == nil {
		return tag.String()
	}
	return typed
}

// Empty returns an empty row, for scripts.
func (messageView) Empty() messageRow { return messageRow{} }

func newMessageView(r *room.Room) messageView {
	v := messageView{Ends: messageEnds, Focus: -1}
	for _, tag := range messageLanguages {
		v.Languages = append(v.Languages, format.Language(tag))
	}
	m := r.Snapshot().Message(r.Now())
	if m == nil {
		brand := r.Config().Brand
		v.Form.Rows = []messageRow{{Language: format.Language(slices.Concat(brand.Languages, branding.Languages)[0])}}
		return v
	}
	for _, tag := range m.Tags() {
		v.Live = append(v.Live, messageRow{format.Language(tag), m.Texts[tag]})
	}
	v.Form.Rows, v.Until = slices.Clone(v.Live), m.Until
	if m.Until != nil {
		v.Form.Ends, v.Form.Until = endsAt, m.Until.Format(format.MomentLayout)
	}
	return v
}

// readMessageForm reads the form: at least one row, and at most one more than allowed, so that an excess is
// noticed.
func readMessageForm(sent url.Values) messageForm {
	f := messageForm{Ends: sent.Get("ends"), Until: format.ReadMoment(format.Clean(sent.Get("until")))}
	for i := 0; sent.Has(rowField(i, "text")) && i <= room.MaxMessageLanguages; i++ {
		f.Rows = append(f.Rows, messageRow{format.Clean(sent.Get(rowField(i, "language"))),
			format.Clean(sent.Get(rowField(i, "text")))})
	}
	if len(f.Rows) == 0 {
		f.Rows = []messageRow{{}}
	}
	return f
}

func rowField(i int, member string) string { return fmt.Sprintf("message[%d].%s", i, member) }

// edit adds or removes a language for browsers without scripts. It reports whether one of these buttons
// was used.
func (v *messageView) edit(x *shell.Request) bool {
	verb, argument, _ := strings.Cut(x.Form("do"), ":")
	f := readMessageForm(x.Request().PostForm)
	switch i, err := strconv.Atoi(argument); {
	case verb == "add-language":
		f.Rows = append(f.Rows, messageRow{})
		v.Focus = len(f.Rows) - 1
	case verb == "remove-language" && err == nil && i > 0 && i < len(f.Rows):
		f.Rows = slices.Delete(f.Rows, i, i+1)
	default:
		return false
	}
	v.Form = f
	return true
}

// amendment returns the amendment with the typed message. Its error names fields of the form.
func (f *messageForm) amendment(r *room.Room) (room.Amendment, error) {
	texts, rows, problems := map[string]string{}, map[string]int{}, invalid.List(nil)
	for i, row := range f.Rows {
		tag := languageTag(row.Language)
		_, isThere := texts[tag]
		switch _, err := language.Parse(tag); {
		case err != nil:
			problems.Add(rowField(i, "language"), "Choose a language, or type a tag such as nl or pt-BR.")
		case isThere:
			problems.Add(rowField(i, "language"), "This language is listed twice.")
		}
		texts[tag], rows[tag] = row.Text, i
	}
	message := map[string]any{"default": languageTag(f.Rows[0].Language), "texts": texts}
	switch {
	case f.Ends == endsAt && f.Until == "":
		problems.Add("until", "Enter when the message ends.")
	case f.Ends == endsAt:
		message["until"] = f.Until
	case f.Ends != "":
		message["for"] = f.Ends
	}
	if len(problems) > 0 {
		return room.Amendment{}, problems.Err()
	}
	a, err := amendment(map[string]any{"message": message})
	if err == nil {
		err = r.Check(a)
	}
	if wrong, ok := errors.AsType[*invalid.Error](err); ok {
		err = inMessageForm(wrong.Problems, rows).Err()
	}
	return a, err
}

// inMessageForm replaces message members in problems with the form's fields.
func inMessageForm(problems invalid.List, rows map[string]int) invalid.List {
	list := slices.Clone(problems)
	for i, p := range list {
		if tag, ok := strings.CutPrefix(p.Field, "message.texts."); ok {
			list[i].Field = rowField(rows[tag], "text")
		} else if p.Field == "message.until" || p.Field == "message.for" {
			list[i].Field = "until"
		} else {
			list[i].Field = "message.texts"
		}
	}
	return list
}

func (h *controls) askMessage(x *shell.Request, r *room.Room) (shell.Question, error) {
	f := readMessageForm(x.Request().PostForm)
	a, err := f.amendment(r)
	if err != nil {
		return shell.Question{}, err
	}
	was, is := r.Snapshot().Message(r.Now()), a.Message.At(r.Now())
	if was != nil && was.Canonical() == is.Canonical() {
		return shell.Question{}, invalid.Field("message[0].text", "Visitors already see this message.")
	}
	q := shell.Question{
		Title: "Show this message?", Button: "Show the message", Changes: messageChanges(was, &is),
		Notes: []string{
			format.People(r.Snapshot().Counts.Unsettled()) +
				" in line see it: within seconds if their turn is near, others within about a minute. Visitors who join later " +
				"see it, too.",
			"The public transcript records its hash, so you cannot deny it later.",
		},
	}
	ends := shell.Shown("Shown until", messageEnd(&is))
	if a.Message.For != 0 {
		ends.Is = format.Duration(a.Message.For) + " from now, then it disappears"
	}
	if was != nil {
		ends.Was = messageEnd(was)
	}
	q.Changes = append(q.Changes, ends)
	return q, nil
}

// messageChanges lists the changes by language, default first. A nil message means none.
func messageChanges(was, is *room.Message) []shell.Change {
	var list []shell.Change
	add := func(tag string) {
		before, after := "", ""
		if was != nil {
			before = was.Texts[tag]
		}
		if is != nil {
			after = is.Texts[tag]
		}
		label := format.Language(tag)
		if is != nil && tag == is.Default && len(is.Texts) > 1 {
			label += ", main language"
		}
		list = append(list, shell.Changed(label, format.Lines(before), format.Lines(after)))
	}
	if is != nil {
		for _, tag := range is.Tags() {
			add(tag)
		}
	}
	if was != nil {
		for _, tag := range was.Tags() {
			if is == nil || is.Texts[tag] == "" {
				add(tag)
			}
		}
	}
	return list
}

// messageEnd describes when a message ends.
func messageEnd(m *room.Message) any {
	if m.Until == nil {
		return "you remove it"
	}
	return *m.Until
}

func (h *controls) broadcast(x *shell.Request, r *room.Room) error {
	f := readMessageForm(x.Request().PostForm)
	a, err := f.amendment(r)
	if err != nil {
		return err
	}
	_, err = h.rooms.Amend(x.Request().Context(), x.Actor, r.Slug, a, nil)
	return err
}

func (h *controls) askTakeBack(_ *shell.Request, r *room.Room) (shell.Question, error) {
	m := r.Snapshot().Message(r.Now())
	if m == nil {
		return shell.Question{}, invalid.Field("message", "Visitors see no message.")
	}
	return shell.Question{
		Title: "Remove the message?", Button: "Remove it", Changes: messageChanges(m, nil),
		Notes: []string{"It disappears from pages within about a minute.", recorded},
	}, nil
}

func (h *controls) takeBack(x *shell.Request, r *room.Room) error {
	_, err := h.rooms.Amend(x.Request().Context(), x.Actor, r.Slug, room.Amendment{Message: &room.MessageChange{}}, nil)
	return err
}
