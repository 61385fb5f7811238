//go:build race

package main

// The binaries under test are built as the tests are.
const raceFlag = "-race=true"
