#!/bin/sh
# Makes sure that Go is new enough, or can fetch the version that is.
set -eu

explain() {
	echo "Go 1.26 or newer is needed, $1: see https://go.dev/doc/install" >&2
	exit 1
}

command -v go >/dev/null || explain "and there is none in PATH"
have=$(go env GOVERSION 2>&1) || explain "and here it says: $have"
case $have in
go1.[0-9] | go1.[0-9].* | go1.1[0-9]* | go1.2[0-5] | go1.2[0-5][!0-9]*) explain "and here is $have" ;;
esac
