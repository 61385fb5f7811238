-- +goose Up

-- Page texts and links besides the title, as JSON; null: not set. The version counts changes, so
-- that nodes can poll it and read the settings only after a change.
alter table rooms
  add column settings         jsonb,
  add column settings_version bigint not null default 0;
