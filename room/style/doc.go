// Package style limits what organizers may do to the look of a room's pages, so that no text becomes
// unreadable, hidden or displaced. It does no I/O.
//
// # Colours
//
// [NewPalette] derives all colours of a page from one or two chosen ones: text moves towards black or white
// until its contrast with all its backgrounds is 4.5 to 1 (https://www.w3.org/TR/WCAG22/#contrast-minimum).
//
// # Custom CSS
//
// [Parse] reads a small language that looks like CSS. The result is generated from what was parsed; the input
// is never passed through. Anything that is not listed here is refused, with line and column:
//
//   - Rules: selectors made of the page's hooks ([Elements], [Classes], [Pseudos]), at most four nested parts,
//     and declarations of the listed [Properties]. The only at-rule is @media with prefers-color-scheme,
//     prefers-reduced-motion, min-width and max-width.
//   - Values: numbers within bounds, keywords, colours as #rgb or #rrggbb, and the colours of the page as
//     var(--ink). No strings, no functions except var() and gradients, no url(), no escapes, no !important.
//   - Nothing can be hidden or moved away: display, position, overflow, transform, opacity and content do not
//     exist, nor do negative margins, or text below 12 pixels. Elements that show place, time and check are
//     honest: tighter bounds apply to them, see [Property.Honest].
//   - Text is readable: its colour is one of the page's, or the same rule sets a background to which it
//     contrasts by 4.5 to 1. A background also sets the colours of everything on it.
//
// A [Sheet] has two forms: [Sheet.Source] in the language, and [Sheet.CSS] for browsers.
package style
