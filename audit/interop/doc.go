// Package interop shows that a room's published log is read unchanged by
// readers that nobody of this project wrote. All of it is tests; the module is
// a nested one, so that the readers never become dependencies of the product.
package interop
