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
