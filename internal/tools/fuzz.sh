#!/bin/sh
# Runs every fuzz target of the module in turn, each for the time given as the
# first argument. Inputs that reach new code are made smaller in ten runs at most:
# otherwise Go spends up to a minute on each, and hardly any time on new ones.
set -eu

go list -f '{{.Dir}}' ./... | while read -r dir; do
	grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go 2>/dev/null | cut -c 6- | while read -r target; do
		echo "$dir $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" -fuzzminimizetime 10x "$dir" </dev/null
	done
done
