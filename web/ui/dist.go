// Package ui embeds the scripts, styles and images of the visitors' and the organizers' pages.
//
//	src ─► npm run build ─► dist, named by content hash ─► Dist ─► packages page and console
package ui

import (
	"embed"
	"io/fs"
)

// The pattern always matches this file, so that the program can be built before npm has created
// dist.
//
//go:embed dist*
var files embed.FS

// Dist returns the built files: manifest.json, from plain names to names that
// hold a hash of the content, and files of these names. Without a build the
// file system is empty.
func Dist() fs.FS {
	dist, err := fs.Sub(files, "dist")
	if err != nil {
		return embed.FS{} // never happens: the name is valid
	}
	return dist
}
