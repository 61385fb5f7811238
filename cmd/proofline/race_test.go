//go:build race

package main

// The binaries under test are built with the same -race as the tests.
const raceFlag = "-race=true"
