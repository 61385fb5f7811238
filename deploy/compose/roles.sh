#!/bin/sh
# Runs once in the database's container: makes the owner of the schema, and the role
# with which the server adds to the log but cannot change it.
set -eu

# secret ROLE: its password, which has no quotes.
secret() { sed -n "s/^.*:$1://p" /run/secrets/pgpass; }

psql --set=ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres <<SQL
create role proofline_owner login password '$(secret proofline_owner)';
create role proofline_server login password '$(secret proofline_server)';
create database proofline owner proofline_owner;
grant proofline_server to proofline_owner;
SQL
