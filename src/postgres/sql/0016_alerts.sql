-- Alerts: what somebody should be told of, once, however many processes look.

-- One row a thing that is wrong now. Written by whoever looks, deleted by whoever finds it well again.
create table {schema}.alerts (
  kind text not null,
  subject text not null,
  raised_at timestamptz not null,
  told_at timestamptz not null,
  primary key (kind, subject)
);
