-- name: statistics
-- What do the statistics say of the table and, if it is partitioned, of each part of it?
-- By oid and from the catalogue alone, so it answers while the table is locked.
WITH RECURSIVE {parts}
SELECT c.oid,
       pg_stat_get_live_tuples(c.oid) AS live,
       pg_stat_get_dead_tuples(c.oid) AS dead,
       pg_stat_get_tuples_inserted(c.oid) AS inserted,
       pg_stat_get_tuples_updated(c.oid) AS updated,
       pg_stat_get_tuples_deleted(c.oid) AS deleted,
       extract(epoch FROM greatest(pg_stat_get_last_vacuum_time(c.oid),
                                   pg_stat_get_last_autovacuum_time(c.oid)))::float8 AS last_vacuum,
       c.reltuples::float8 AS reltuples,
       current_setting('autovacuum')::bool AND current_setting('track_counts')::bool
         AND coalesce(own.enabled, 'true')::bool AS enabled,
       coalesce(own.threshold, current_setting('autovacuum_vacuum_threshold'))::float8 AS threshold,
       coalesce(own.scale_factor, current_setting('autovacuum_vacuum_scale_factor'))::float8 AS scale_factor,
       coalesce(own.max_threshold, current_setting('autovacuum_vacuum_max_threshold', true))::float8 AS max_threshold
  FROM parts JOIN pg_class c USING (oid)
 CROSS JOIN LATERAL (
    SELECT max(option_value) FILTER (WHERE option_name = 'autovacuum_enabled') AS enabled,
           max(option_value) FILTER (WHERE option_name = 'autovacuum_vacuum_threshold') AS threshold,
           max(option_value) FILTER (WHERE option_name = 'autovacuum_vacuum_scale_factor') AS scale_factor,
           max(option_value) FILTER (WHERE option_name = 'autovacuum_vacuum_max_threshold') AS max_threshold
      FROM pg_options_to_table(c.reloptions)) AS own
 WHERE c.relkind <> 'p';
