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
-- ahead is no age, so it needs no upper bound. The ids of jobs that a worker holds are for who
-- looks at each of them.
SELECT queue,
       {now} AS now,
       count(*) FILTER (WHERE reserved_at IS NULL AND available_at <= {now}) AS ready,
       count(*) FILTER (WHERE reserved_at IS NULL AND available_at > {now}) AS delayed,
       count(*) FILTER (WHERE reserved_at IS NOT NULL AND reserved_at > {now} - {retry_after}) AS reserved,
       count(*) FILTER (WHERE reserved_at IS NOT NULL AND reserved_at <= {now} - {retry_after}) AS expired,
       min(available_at) FILTER (WHERE reserved_at IS NULL AND available_at >= {earliest}) AS ready_since,
       min(reserved_at) FILTER (WHERE reserved_at >= {earliest}) AS reserved_since,
       count(*) FILTER (WHERE coalesce(reserved_at, available_at)
                              NOT BETWEEN {earliest} AND {now} + {ten_years}) AS implausible,
       count(*) FILTER (WHERE reserved_at IS NULL AND attempts > 0) AS retried,
       max(attempts) AS attempts_max,
       (array_agg(id) FILTER (WHERE reserved_at IS NOT NULL))[1:{most_held}] AS held
  FROM {jobs}
 WHERE {wanted}
 GROUP BY queue;

-- name: jobs_by_index
-- The same from two partial indexes, (queue, available_at) WHERE reserved_at IS NULL and
-- (queue, reserved_at) WHERE reserved_at IS NOT NULL. The queues with waiting jobs are found by
-- jumping from one name to the next; counting a range of the index is then all the work. Worth it
-- only where most pages are marked as visible to all: for every other entry, dead ones included,
-- and for each number anew, the wide row is visited after all. The attempts are in no index.
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
           count(*) FILTER (WHERE reserved_at NOT BETWEEN {earliest} AND {now} + {ten_years}) AS implausible,
           (array_agg(id))[1:{most_held}] AS held
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
       coalesce(waiting.implausible, 0) + coalesce(held.implausible, 0) AS implausible,
       held.held
  FROM waiting
  FULL JOIN held USING (queue);
