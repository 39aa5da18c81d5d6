-- name: pop_table
-- Is there a table? (What time it is, and how long a question may take, the first statement of each message says.)
SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
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
