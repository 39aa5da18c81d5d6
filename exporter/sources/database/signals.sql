-- name: begun
-- Since when have this database's sessions been there, a row per program and role? Without
-- pg_monitor that is hidden (null) for the sessions of other roles.
SELECT application_name,
       usename AS role,
       array_agg(extract(epoch FROM backend_start)::float8) AS begun
  FROM pg_stat_activity
 WHERE datname = current_database() AND coalesce(backend_type = 'client backend', usesysid IS NOT NULL)
 GROUP BY 1, 2;

-- name: signals
-- What stands under these keys? As for Laravel, what has expired does not exist. A cache may be
-- huge, so each key is looked up in the primary key. The planner would rather read a small table
-- from end to end for a few hundred keys, and would read all of the index on the expiry that
-- Laravel 12 makes: so it may not read the table, and sees the expiry afterwards. No value of
-- ours is longer than its beginning.
SET LOCAL enable_seqscan = off;
WITH found AS MATERIALIZED (SELECT key, value, expiration FROM {cache} WHERE key = ANY({keys}::text[]))
SELECT key, left(value, 64) AS value
  FROM found
 WHERE expiration > {now};

-- name: other_prefix
-- Do the keys of this cache begin in another way than those that we look for? A few of them tell.
SELECT coalesce(bool_and(NOT key ^@ ANY ({prefixes}::text[])), false) AS other
  FROM (SELECT key FROM {cache} LIMIT {look_at}) AS few;
