// Package console serves the organizers' pages under /console. They are rendered on the server and, where
// possible, work without scripts, which only make them more convenient.
//
// # Parts
//
// Each group of pages is a package that returns a [shell.Part]: people, rooms, live and sites. This package
// wires them together. Package shell has what they share: routing, sessions, scopes and rendering. Package
// format writes and reads values.
//
// # How to add a page
//
// A page is a handler in the routes of its part:
//
//	func (h *list) routes() []shell.Route {
//		return []shell.Route{
//			shell.Get("/rooms", account.Read, h.show),
//			shell.Post("/rooms/:slug/duplicate", account.Operate, h.duplicate),
//		}
//	}
//
// Paths are below /console. The scope is what the person needs in the organization of the session;
// [shell.Public] needs no session, [shell.SignedIn] any. The shell finds the session, checks the scope,
// refuses requests from other sites, limits the body, and answers errors. A handler gets a [shell.Request]:
//
//	x.Actor, x.Identity        the person; services take the actor as an argument
//	x.Form("title")            the value of a form field, or ""
//	x.Wait()                   a context with the time limit of an answer
//	x.Page("rooms", data)      answers 200 with templates/rooms.html
//	x.Invalid("room-brand", data, err)
//	                           answers 400 with the page again; it shows {{problem . "title"}} at the field
//	x.Confirm(question, back)  asks before an action; x.IsConfirmed() reports the answer
//	x.Done("/rooms", "paused") redirects to a page that shows the notice "paused" of the part once
//	return err                 answers with an error page, or with a problem document for scripts
//
// # Templates
//
// A template file defines "title" and "main"; the shell's frame.html surrounds it. Its data is [shell.View],
// with the handler's data in .Data. Partials for several pages are in part-*.html; the shell has those of
// several parts. Functions of all templates: problem, has, may, dict, number, when, duration, asset.
//
// # Scripts
//
// An element with data-island="name" is passed to the module of that name (web/ui/src/console/main.ts). The
// dashboard, which has charts, has its own script and style (web/ui/src/console/live). The content security
// policy forbids inline scripts, styles and handlers. Buttons with data-ask show their question as a dialog.
//
// # Style
//
// web/ui/src/style/console.css has the components: .bar .nav .card .grid .table .form .field .error .hint
// .button .button.quiet .button.danger .badge .tabs .notice .empty .figures .chart dialog. Colours are
// variables, light and dark. Pages must work at 360 px, by keyboard, and with a screen reader.
package console
