// Package site is what organizations protect: the rules of their sites, signed
// for the connectors that go by them, and which connectors there are. It has no
// HTTP.
package site
