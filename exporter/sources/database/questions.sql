-- What is asked of a database, and what all questions share: those of one collector are in the
-- .sql file beside it. Each goes out behind `before` in one message, which PostgreSQL runs as one
-- transaction. What a {name} stands for is said in questions.py:
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
SELECT extract(epoch FROM current_setting('statement_timeout')::interval)::float8 AS role_limit,
       set_config('statement_timeout',
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
