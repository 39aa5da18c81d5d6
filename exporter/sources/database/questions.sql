-- Every question that is asked of a database. Each goes out behind `before` in one message,
-- which PostgreSQL runs as one transaction. What a {name} stands for is said in questions.py:
-- {jobs} is the configured table, {schema} and {table} are its names in the catalogue, {now} the
-- database's clock in whole seconds (PHP floors, a cast would round), {retry_after} the seconds
-- that apply to the row's queue, {wanted} a condition on it.

-- name: before
-- For this transaction alone. The search_path comes first, so that no other schema's function,
-- operator or temporary table is ever used. Where policies would hide rows from our role, an
-- error tells so instead of a count that is too small. A time limit of the role's that is
-- tighter than ours stays. A database in SQL_ASCII may hold bytes that are no text: it would
-- refuse to send them as UTF-8.
SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL row_security = off;
SET LOCAL max_parallel_workers_per_gather = 0;
SET LOCAL jit = off;
SET LOCAL timezone = 'UTC';
SELECT set_config('statement_timeout',
                  least(nullif(extract(epoch FROM current_setting('statement_timeout')::interval) * 1000, 0),
                        {statement_timeout})::bigint::text, true),
       set_config('lock_timeout',
                  least(nullif(extract(epoch FROM current_setting('lock_timeout')::interval) * 1000, 0),
                        {lock_timeout})::bigint::text, true),
       set_config('client_encoding',
                  CASE current_setting('server_encoding') WHEN 'SQL_ASCII' THEN 'SQL_ASCII' ELSE 'UTF8' END, true),
       extract(epoch FROM clock_timestamp())::float8 AS now,
       pg_is_in_recovery() AS in_recovery;

-- name: parts
-- No question, but a piece of several: the jobs table and, if it is partitioned, each part.
parts AS (
    SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = {schema} AND c.relname = {table} AND c.relkind IN ('r', 'p', 'm')
    UNION
    SELECT i.inhrelid FROM pg_inherits i JOIN parts ON i.inhparent = parts.oid)

-- name: standby
-- How far is a standby behind? (null: not known.) While the primary is heard of and all that came
-- from it is replayed, nothing is missing, even if it has been idle for long. Without pg_monitor
-- the time of its last word is hidden, and an idle primary cannot be told from a lost one.
SELECT CASE WHEN NOT pg_is_in_recovery() THEN 0
            WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn()
                 AND EXISTS (SELECT FROM pg_stat_wal_receiver
                              WHERE last_msg_receipt_time > clock_timestamp() - make_interval(secs => {heard_of})) THEN 0
            ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())
       END::float8 AS replay_lag;

-- name: table
-- Is there such a table, of what kind, what are its indexes, as "(columns) (condition)", how much
-- of it do all transactions see alike, by the last vacuum, and how long may a question take? No
-- row if there is no table. Waits for a lock on it: pg_get_expr opens it. An index in another
-- order than the column's own (COLLATE, text_pattern_ops) cannot serve our questions.
WITH RECURSIVE {parts}
SELECT c.relkind = 'r' AS is_plain,
       current_setting('statement_timeout') AS time_limit,
       (SELECT coalesce(sum(p.relallvisible) * current_setting('block_size')::int
                        / nullif(sum(pg_relation_size(p.oid)), 0), 0)::float8
          FROM parts JOIN pg_class p USING (oid) WHERE p.relkind <> 'p') AS visible,
       ARRAY(SELECT concat_ws(' ', '(' || array_to_string(
                        ARRAY(SELECT pg_get_indexdef(i.indexrelid, n, true)
                                FROM generate_series(1, i.indnkeyatts) AS n ORDER BY n), ', ') || ')',
                    pg_get_expr(i.indpred, i.indrelid))
               FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am m ON m.oid = x.relam
              WHERE i.indrelid = c.oid AND i.indisvalid AND m.amname = 'btree'
                AND NOT EXISTS (
                    SELECT FROM generate_series(0, i.indnkeyatts - 1) AS n
                      JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[n]
                      JOIN pg_opclass o ON o.oid = i.indclass[n]
                     WHERE a.attcollation <> i.indcollation[n] OR NOT o.opcdefault)) AS indexes
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = {schema} AND c.relname = {table} AND c.relkind IN ('r', 'p', 'v', 'm', 'f');

-- name: jobs
-- How many jobs are in which state, and since when does the oldest wait? One pass over the table.
-- reserved_at is null in most rows: asked first, it spares them the rest. A "since" that lies
-- ahead is no age, so it needs no upper bound.
SELECT queue,
       {now} AS now,
       count(*) FILTER (WHERE reserved_at IS NULL AND available_at <= {now}) AS ready,
       count(*) FILTER (WHERE reserved_at IS NULL AND available_at > {now}) AS delayed,
       count(*) FILTER (WHERE reserved_at IS NOT NULL AND reserved_at > {now} - {retry_after}) AS reserved,
       count(*) FILTER (WHERE reserved_at IS NOT NULL AND reserved_at <= {now} - {retry_after}) AS expired,
       min(available_at) FILTER (WHERE reserved_at IS NULL AND available_at >= {earliest}) AS ready_since,
       min(reserved_at) FILTER (WHERE reserved_at >= {earliest}) AS reserved_since,
       count(*) FILTER (WHERE coalesce(reserved_at, available_at)
                              NOT BETWEEN {earliest} AND {now} + {ten_years}) AS implausible
  FROM {jobs}
 WHERE {wanted}
 GROUP BY queue;

-- name: jobs_by_index
-- The same from two partial indexes, (queue, available_at) WHERE reserved_at IS NULL and
-- (queue, reserved_at) WHERE reserved_at IS NOT NULL. The queues with waiting jobs are found by
-- jumping from one name to the next; counting a range of the index is then all the work. Worth it
-- only where most pages are marked as visible to all: for every other entry, dead ones included,
-- and for each number anew, the wide row is visited after all.
WITH RECURSIVE jump AS (
    (SELECT queue FROM {jobs} WHERE reserved_at IS NULL AND {wanted} ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT queue FROM {jobs}
             WHERE reserved_at IS NULL AND {wanted} AND queue > jump.queue ORDER BY queue LIMIT 1)
      FROM jump
     WHERE jump.queue IS NOT NULL),
waiting AS (
    SELECT jump.queue, w.*
      FROM jump
     CROSS JOIN LATERAL (
        SELECT (SELECT count(*) FROM {jobs}
                 WHERE queue = jump.queue AND reserved_at IS NULL AND available_at <= {now}) AS ready,
               (SELECT count(*) FROM {jobs}
                 WHERE queue = jump.queue AND reserved_at IS NULL AND available_at > {now}) AS delayed,
               (SELECT min(available_at) FROM {jobs}
                 WHERE queue = jump.queue AND reserved_at IS NULL AND available_at >= {earliest}) AS ready_since,
               (SELECT count(*) FROM {jobs}
                 WHERE queue = jump.queue AND reserved_at IS NULL AND available_at < {earliest})
             + (SELECT count(*) FROM {jobs}
                 WHERE queue = jump.queue AND reserved_at IS NULL AND available_at > {now} + {ten_years}) AS implausible
     ) AS w
     WHERE jump.queue IS NOT NULL),
held AS (
    SELECT queue,
           count(*) FILTER (WHERE reserved_at > {now} - {retry_after}) AS reserved,
           count(*) FILTER (WHERE reserved_at <= {now} - {retry_after}) AS expired,
           min(reserved_at) FILTER (WHERE reserved_at >= {earliest}) AS reserved_since,
           count(*) FILTER (WHERE reserved_at NOT BETWEEN {earliest} AND {now} + {ten_years}) AS implausible
      FROM {jobs}
     WHERE reserved_at IS NOT NULL AND {wanted}
     GROUP BY queue)
SELECT queue,
       {now} AS now,
       coalesce(ready, 0) AS ready,
       coalesce(delayed, 0) AS delayed,
       coalesce(reserved, 0) AS reserved,
       coalesce(expired, 0) AS expired,
       ready_since,
       reserved_since,
       coalesce(waiting.implausible, 0) + coalesce(held.implausible, 0) AS implausible
  FROM waiting
  FULL JOIN held USING (queue);

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

-- name: sizes
-- How many bytes are rows, out-of-line values and indexes? These functions open the table, so
-- they wait behind an ALTER TABLE: a question of its own.
WITH RECURSIVE {parts}
SELECT count(*) AS parts,
       coalesce(sum(pg_relation_size(c.oid)), 0)::float8 AS heap,
       coalesce(sum(pg_total_relation_size(nullif(c.reltoastrelid, 0))), 0)::float8 AS toast,
       coalesce(sum(pg_indexes_size(c.oid)), 0)::float8 AS indexes
  FROM parts JOIN pg_class c USING (oid)
 WHERE c.relkind <> 'p';

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
