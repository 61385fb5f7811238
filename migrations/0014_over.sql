-- +goose Up

-- When the site ended a free session before its time, in milliseconds since the
-- Unix epoch; null: it did not.
alter table room_free_sessions add column ended_ms bigint;

-- Sessions that a site ended lately, of which all its connectors are told.
create index room_free_sessions_ended on room_free_sessions (room_id, ended_ms) where ended_ms is not null;
create index room_sessions_released on room_sessions (room_id, released_at) where released_at is not null;
