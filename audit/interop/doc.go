// Package interop tests that independent readers can read a room's published log unchanged. It
// contains only tests; it is a nested module, so that the readers never become dependencies of
// Proofline.
package interop
