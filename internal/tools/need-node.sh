#!/bin/sh
# Checks for Node.js and npm, which build the scripts of the visitor's pages. On
# a Debian-like system, root gets them installed.
set -eu

oldest=18 # Debian 12's: enough to build; the tests need 20

# usable: npm and a sufficiently new node are installed.
usable() {
	command -v npm >/dev/null || return 1
	major=$(node --version 2>/dev/null | sed -n 's/^v\([0-9]*\).*/\1/p')
	[ "${major:-0}" -ge "$oldest" ]
}

explain() {
	cat >&2 <<-TEXT
		Node.js $oldest or newer and npm are needed to build the scripts of the visitor's pages, but
		${1:-none} is installed. Install them and try again:
		  Debian, Ubuntu:  apt install nodejs npm
		  Fedora:          dnf install nodejs
		  macOS:           brew install node
		or see https://nodejs.org/en/download
	TEXT
	exit 1
}

if usable; then
	exit 0
fi
if ! command -v node >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" -eq 0 ]; then
	echo "installing Node.js and npm" >&2
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q >&2
	apt-get install -y -q --no-install-recommends nodejs npm >&2
fi
usable || explain "$(node --version 2>/dev/null)"
