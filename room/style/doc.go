// Package style is what an organizer may do to the looks of a room's pages, so
// that nothing they say gets unreadable, hidden or displaced. It is pure.
//
// # Colours
//
// [NewPalette] makes all colours of a page from one or two that were chosen:
// text is moved towards black or white until it contrasts by 4.5 to 1 with
// everything that it stands on (https://www.w3.org/TR/WCAG22/#contrast-minimum).
//
// # Own CSS
//
// [Parse] reads a small language that looks like CSS and is written anew, never
// passed through. What is not listed is refused, with line and column:
//
//   - Rules: selectors of the page's hooks ([Elements], [Classes], [Pseudos]),
//     at most four of them below one another, and declarations of the listed
//     [Properties]. The only at-rule is @media with prefers-color-scheme,
//     prefers-reduced-motion, min-width and max-width.
//   - Values: numbers within bounds, keywords, colours as #rgb or #rrggbb, and
//     the colours of the page as var(--ink). No strings, no functions but var()
//     and gradients, no url(), no escapes, no !important.
//   - Nothing hides or moves away: there are no display, position, overflow,
//     transform, opacity and content, no negative margins, and no text below
//     12 pixels. What says place, time and check is honest: it takes tighter
//     bounds, see [Property.Honest].
//   - A colour of text is readable: it is one of the page's, or it comes with
//     its own background in the same rule and contrasts by 4.5 to 1. A
//     background brings the colours of everything on it along.
//
// A [Sheet] has two forms: [Sheet.Source] is what was understood, in the
// language; [Sheet.CSS] is what browsers get.
package style
