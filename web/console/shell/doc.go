// Package shell is the frame of the console's pages: it routes requests, finds the session, checks
// scopes, refuses requests from other sites, limits bodies and time, renders templates, and answers
// errors.
//
// Groups of pages are separate packages. Each returns a [Part] with its routes, templates, template
// functions and notices, and gets a [Request] for each request.
package shell
