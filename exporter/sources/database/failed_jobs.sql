-- name: failed_table
-- Is there such a table, and which of the columns that not every one has? Their order in time is
-- that of an id that counts up; a payload may be kept from us.
SELECT coalesce(bool_or(attname = 'id' AND atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)), false)
         AS has_id,
       coalesce(bool_or(attname = 'payload' AND has_column_privilege(attrelid, attnum, 'SELECT')), false)
         AS has_payload
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
 WHERE n.nspname = {schema} AND c.relname = {failed_table} AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
 GROUP BY c.oid;

-- name: failed_rows
-- What is the highest id, and which rows are there above the one that was the highest before
-- (the first time: the last few), or with an id that was missing then? Where rows were deleted or
-- the ids begin again, the highest is lower than before. A row always comes, if only for that.
-- The index gives the rows in their order, a few pages for each; of the payload its beginning is
-- read, more of it where it does not begin as Laravel writes it, and the exception never.
WITH top AS (SELECT coalesce(max(id), 0) AS highest FROM {failed_jobs}),
known AS (SELECT highest, least(highest, coalesce({read_to}::bigint, highest - {first})) AS read_to FROM top)
SELECT known.highest,
       known.read_to,
       new.id,
       coalesce(new.connection::text, '') AS connection,
       coalesce(new.queue::text, '') AS queue,
       left(new.payload, CASE WHEN left(new.payload, 8) IN ('{{"uuid":', '{{"displa')
                              THEN {payload_read} ELSE {payload_read_reordered} END) AS payload
  FROM known
  LEFT JOIN LATERAL (
       (SELECT id, connection, queue, {payload}::text AS payload
          FROM {failed_jobs} WHERE id > known.read_to ORDER BY id LIMIT {most})
        UNION ALL
       (SELECT id, connection, queue, {payload}::text AS payload
          FROM {failed_jobs} WHERE id <= known.read_to AND id = ANY ({missing}::bigint[]))) AS new ON true;

-- name: failed_counts
-- How many rows are there of each queue? Reads all of them, or an index on (connection, queue) if
-- there is one: Laravel's own has it since 13.9.
SELECT coalesce(connection::text, '') AS connection, coalesce(queue::text, '') AS queue, count(*) AS rows
  FROM {failed_jobs}
 GROUP BY 1, 2;
