-- name: pop_limits
-- How long may a question take here, the tighter of our limit and the role's, and is there a table?
-- (What time it is, the first statement of each message says.)
SELECT extract(epoch FROM current_setting('statement_timeout')::interval)::float8 AS seconds,
       EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = {schema} AND c.relname = {table}) AS has_table;

-- name: pop
-- What does it cost now to find the next job of a queue? What Laravel's `pop` sends, without its lock
-- on the row. All values are literals, as a worker's are to the planner when its statement is run.
EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON)
SELECT *
  FROM {jobs}
 WHERE queue = {queue}
   AND ((reserved_at IS NULL AND available_at <= {at}) OR reserved_at <= {expired_at})
 ORDER BY id ASC
 LIMIT 1;
