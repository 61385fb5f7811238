-- +goose Up

-- What pages show beside the title and where they lead, as JSON; null where the
-- organizer said nothing. The version counts the changes: nodes look at it
-- often, and read the settings when it has moved.
alter table rooms
  add column settings         jsonb,
  add column settings_version bigint not null default 0;
