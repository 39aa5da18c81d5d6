-- name: reservations
-- Which of these jobs does a worker hold now, since when, and in which attempt? By primary key, so
-- it costs a few pages each. The beginning of the payload only of those that we do not know yet:
-- no JSON operator survives what PHP serialises, and a payload may hold megabytes.
SELECT id,
       available_at,
       queue,
       attempts,
       reserved_at,
       CASE WHEN id = ANY ({new}::bigint[]) THEN left(payload, {payload_read}) END AS payload
  FROM {jobs}
 WHERE id = ANY ({ids}::bigint[]) AND reserved_at IS NOT NULL;
