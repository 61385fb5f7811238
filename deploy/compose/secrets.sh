#!/bin/sh
# Makes the passwords of the database in the directory secrets, once. Containers read
# the files as other users, so the directory is what protects them.
set -eu
cd "$(dirname "$0")"
if [ -e secrets ]; then
	echo "secrets are there already, and the database has these passwords: nothing to do" >&2
	exit 0
fi

password() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

umask 077
mkdir secrets.new
password >secrets.new/postgres-password
for role in owner server; do
	echo "db:5432:proofline:proofline_$role:$(password)"
done >secrets.new/pgpass
chmod 444 secrets.new/*
mv secrets.new secrets
