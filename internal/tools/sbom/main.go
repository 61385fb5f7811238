// Command sbom writes a CycloneDX bill of materials of the given files: Go programs, whose modules
// it reads from their build information, and package-lock.json files, from which it takes the
// packages that are shipped, not development dependencies. The output is reproducible.
//
//	go run ./internal/tools/sbom VERSION FILE... > proofline.cdx.json
package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom VERSION FILE...")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// write writes the bill of materials of files.
func write(w io.Writer, version string, files []string) error {
	var all []cdx.Component
	for _, file := range files {
		read := program
		if filepath.Base(file) == "package-lock.json" {
			read = lock
		}
		found, err := read(file)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	all = slices.CompactFunc(all, func(a, b cdx.Component) bool { return a.BOMRef == b.BOMRef })
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{
		BOMRef: "proofline@" + version, Type: cdx.ComponentTypeApplication, Name: "proofline", Version: version,
	}}
	bom.Components = &all
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).Encode(bom)
}

// component returns a library with its package URL (https://github.com/package-url/purl-spec).
func component(name, version, purl string) cdx.Component {
	return cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: name, Version: version, PackageURL: purl}
}

// program returns the modules of a Go program and the standard library.
func program(file string) ([]cdx.Component, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, err
	}
	release := strings.TrimPrefix(info.GoVersion, "go")
	list := []cdx.Component{component("stdlib", release, "pkg:golang/stdlib@"+release)}
	for _, m := range info.Deps {
		list = append(list, module(m))
	}
	return list, nil
}

func module(m *debug.Module) cdx.Component {
	if m.Replace != nil {
		m = m.Replace
	}
	c := component(m.Path, m.Version, "pkg:golang/"+m.Path+"@"+m.Version)
	if m.Sum != "" { // a go.sum hash, not a hash of a file
		c.Properties = &[]cdx.Property{{Name: "go:sum", Value: m.Sum}}
	}
	return c
}

// lock returns the shipped npm packages in a package-lock.json.
func lock(file string) ([]cdx.Component, error) {
	text, err := os.ReadFile(file) //nolint:gosec // named on the command line
	if err != nil {
		return nil, err
	}
	var in struct {
		Packages map[string]struct {
			Version, Integrity string
			Dev                bool
		}
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, err
	}
	var list []cdx.Component
	for path, p := range in.Packages {
		at := strings.LastIndex(path, "node_modules/")
		if at < 0 || p.Dev { // the project itself, or a development dependency
			continue
		}
		name := path[at+len("node_modules/"):]
		scope, rest, isScoped := strings.Cut(name, "/")
		purl := "pkg:npm/" + name + "@" + p.Version
		if isScoped {
			purl = "pkg:npm/" + url.QueryEscape(scope) + "/" + rest + "@" + p.Version
		}
		c := component(name, p.Version, purl)
		if hash, ok := strings.CutPrefix(p.Integrity, "sha512-"); ok {
			sum, err := base64.StdEncoding.DecodeString(hash)
			if err != nil {
				return nil, fmt.Errorf("integrity of %s: %w", name, err)
			}
			c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA512, Value: hex.EncodeToString(sum)}}
		}
		list = append(list, c)
	}
	return list, nil
}
