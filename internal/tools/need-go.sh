#!/bin/sh
# Checks that Go is new enough, or can download a version that is.
set -eu

explain() {
	echo "Go 1.26 or newer is needed, but $1: see https://go.dev/doc/install" >&2
	exit 1
}

command -v go >/dev/null || explain "it is not in PATH"
have=$(go env GOVERSION 2>&1) || explain "go env fails: $have"
case $have in
go1.[0-9] | go1.[0-9].* | go1.1[0-9]* | go1.2[0-5] | go1.2[0-5][!0-9]*) explain "$have is installed" ;;
esac
