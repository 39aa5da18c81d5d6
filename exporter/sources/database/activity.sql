-- name: server
-- How many connections may there be, may we see what other roles do, and what besides a
-- session keeps old row versions alive? (A slot or a standby keeps no time for its xmin.)
SELECT pg_has_role('pg_read_all_stats', 'USAGE') AS sees_all,
       current_setting('max_connections')::int AS max_connections,
       current_setting('superuser_reserved_connections')::int
         + coalesce(current_setting('reserved_connections', true)::int, 0) AS reserved_connections,
       (SELECT max(extract(epoch FROM clock_timestamp() - prepared))::float8
          FROM pg_prepared_xacts WHERE database = current_database()) AS oldest_prepared,
       ARRAY(SELECT slot_name || ' ' || xmin FROM pg_replication_slots WHERE xmin IS NOT NULL) AS slots,
       ARRAY(SELECT pid || ' ' || backend_xmin FROM pg_stat_replication WHERE backend_xmin IS NOT NULL) AS standbys;

-- name: sessions
-- Who is connected, doing what, and since when has the oldest transaction of each kind been open?
-- Without pg_monitor the kind of another role's process is hidden: then what has a role and a
-- database is taken for a client.
SELECT application_name,
       usename AS role,
       state,
       wait_event_type,
       datname IS NOT DISTINCT FROM current_database() AS here,
       count(*) AS sessions,
       max(extract(epoch FROM clock_timestamp() - xact_start))
         FILTER (WHERE pid <> pg_backend_pid())::float8 AS oldest_transaction
  FROM pg_stat_activity
 WHERE coalesce(backend_type = 'client backend', usesysid IS NOT NULL AND datid IS NOT NULL)
 GROUP BY 1, 2, 3, 4, 5;
