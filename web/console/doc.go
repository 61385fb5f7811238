// Package console is the organizer's side of the server: pages under /console,
// rendered on the server, that work without scripts as far as the matter
// allows, and better with them.
//
// # How a page is made
//
// Each group of pages has a file here, its templates in templates/, and, where
// scripts help, a module in web/ui/src/console. A page is a handler that is
// listed in the routes of its file:
//
//	func (c *Console) roomRoutes() []route {
//		return []route{
//			{GET, "/rooms", account.Read, c.listRooms},
//			{POST, "/rooms/:slug/pause", account.Operate, c.pauseRoom},
//		}
//	}
//
// and [Console.allRoutes] lists the files. Paths are below /console. The scope
// is what the signed-in person needs in the organization that the session is
// in; [Public] needs nobody to be signed in, [SignedIn] anybody.
// [Console.serve] is around every handler: it finds the session, checks the
// scope, refuses what other sites send, bounds body and time, and answers
// errors. A handler gets a [request]:
//
//	x.Actor, x.Identity       who asks; what operations below take as their first argument
//	x.form("title")           a form's value, "" for none; bodies are read before the handler runs
//	x.page("rooms", data)     answers 200 with templates/rooms.html around data
//	x.invalid("room-edit", data, err)
//	                          answers 400 with the page again; the template shows {{problem . "title"}} at its field
//	x.done("/rooms", "paused") answers 303 to a page, which shows the notice "paused" once (notices.go has the words)
//	return err                answers with a page for people, or with a problem document when the
//	                          request accepts JSON or events alone
//
// # Templates
//
// A template file defines "title" and "main"; frame.html is around it. Data is
// .Data; besides there are .Identity, .Path, .Notice, .Problems, .Version.
// Partials that several pages use are in templates/part-*.html. Functions:
// problem, has, dict, number, when, duration, asset, may.
//
// # Scripts
//
// An element with data-island="name" is given to the module of that name
// (web/ui/src/console/main.ts); the dashboard, which brings charts, has a script
// and a style of its own (web/ui/src/console/live). There are no inline scripts, styles or handlers:
// the content security policy refuses them. data-confirm="question" on a submit
// button asks before it sends; without scripts the button leads to a page that
// asks (x.confirm).
//
// # Looks
//
// web/ui/src/style/console.css has the parts: .bar .nav .card .grid .table
// .form .field .error .hint .button .button.quiet .button.danger .badge .tabs
// .notice .empty .figures .chart dialog. Colours are variables, light and dark.
// Pages must work at 360 px, by keyboard, and with a screen reader.
package console
