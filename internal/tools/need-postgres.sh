#!/bin/sh
# Checks for the PostgreSQL server binaries, from which tests and demo start a
# private PostgreSQL. On a Debian-like system, root gets them installed, without
# a cluster and without starting a server.
set -eu

oldest=15

# usable DIR: DIR has a sufficiently new PostgreSQL.
usable() {
	[ -x "$1/initdb" ] && [ -x "$1/postgres" ] || return 1
	major=$("$1/postgres" --version 2>/dev/null | sed -n 's/^postgres (PostgreSQL) \([0-9]*\).*/\1/p')
	[ "${major:-0}" -ge "$oldest" ]
}

# found: one of the directories that internal/localpg searches has one.
found() {
	if [ -n "${PROOFLINE_PG_BIN:-}" ]; then
		usable "$PROOFLINE_PG_BIN"
		return
	fi
	if path=$(command -v postgres) && usable "$(dirname "$path")"; then
		return 0
	fi
	for dir in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/local/pgsql/bin \
		/opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin \
		/Applications/Postgres.app/Contents/Versions/*/bin; do
		if usable "$dir"; then
			return 0
		fi
	done
	return 1
}

explain() {
	cat >&2 <<-TEXT
		PostgreSQL $oldest or newer is needed, its server binaries only. Install it and try again:
		  Debian, Ubuntu:  apt install postgresql
		  Fedora:          dnf install postgresql-server
		  macOS:           brew install postgresql@17
		or set PROOFLINE_PG_BIN to the directory of initdb and postgres.
	TEXT
	exit 1
}

install() {
	echo "installing the PostgreSQL server binaries" >&2
	export DEBIAN_FRONTEND=noninteractive
	# Debian's package creates and starts a cluster unless it is configured not to.
	conf=/etc/postgresql-common/createcluster.d/proofline.conf
	mkdir -p "$(dirname "$conf")"
	echo 'create_main_cluster = false' >"$conf"
	apt-get update -q >&2
	apt-get install -y -q --no-install-recommends postgresql-15 >&2 ||
		apt-get install -y -q --no-install-recommends postgresql >&2
	rm -f "$conf"
}

if found; then
	exit 0
fi
if [ -n "${PROOFLINE_PG_BIN:-}" ] || ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
	explain
fi
install && found || explain
