// Package shell carries the console's pages: it routes requests, finds the session, checks scopes,
// refuses requests from other sites, limits bodies and time, renders templates, and answers errors.
//
// Groups of pages are packages of their own. Each returns a [Part] with its routes, templates,
// template functions and notices, and gets a [Request] for each request.
package shell
