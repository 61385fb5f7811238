#!/bin/sh
# Runs every fuzz target of the module in turn, each for the time given as the
# first argument.
set -eu

go list -f '{{.Dir}}' ./... | while read -r dir; do
	grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go 2>/dev/null | cut -c 6- | while read -r target; do
		echo "$dir $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "$dir" </dev/null
	done
done
