#!/bin/sh
# Makes sure that Chromium, which the browser tests drive, is on this machine.
# Only root on a Debian-like system gets it installed.
set -eu

# found: CHROMIUM names it, or it is where Debian has it.
found() {
	[ -x "${CHROMIUM:-/usr/bin/chromium}" ]
}

explain() {
	cat >&2 <<-TEXT
		Chromium is needed for the browser tests, and ${CHROMIUM:-/usr/bin/chromium} is none. Install it and try again:
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
