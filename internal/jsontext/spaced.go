package jsontext

import "strings"

// Spaced adds a space after each colon and comma between the values of compact JSON.
func Spaced(text string) string {
	var b strings.Builder
	isText := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		b.WriteByte(c)
		switch {
		case isText && c == '\\':
			i++
			b.WriteByte(text[i])
		case c == '"':
			isText = !isText
		case !isText && (c == ':' || c == ','):
			b.WriteByte(' ')
		}
	}
	return b.String()
}
