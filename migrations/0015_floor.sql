-- +goose Up

-- The oldest version of proofline that works with this schema, as the number of the newest migration that it knows.
-- A migration that only adds leaves it; one that takes away what earlier versions use raises it.
create table schema_floor (
  only_row boolean primary key default true check (only_row),
  floor    bigint  not null
);

insert into schema_floor (floor) values (15);

grant select on schema_floor to proofline_server;
