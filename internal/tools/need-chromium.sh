#!/bin/sh
# Checks for Chromium, which the browser tests use. On a Debian-like system, root
# gets it installed.
set -eu

# found: Chromium is at $CHROMIUM, or at its path in Debian.
found() {
	[ -x "${CHROMIUM:-/usr/bin/chromium}" ]
}

explain() {
	cat >&2 <<-TEXT
		The browser tests need Chromium, and there is none at ${CHROMIUM:-/usr/bin/chromium}. Install it and try again:
		  Debian:   apt install chromium
		  Fedora:   dnf install chromium
		or set CHROMIUM to the path of a Chromium or Chrome.
	TEXT
	exit 1
}

if found; then
	exit 0
fi
if [ -n "${CHROMIUM:-}" ] || ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
	explain
fi
echo "installing Chromium" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >&2
apt-get install -y -q --no-install-recommends chromium fonts-noto-core fonts-noto-cjk >&2
found || explain
