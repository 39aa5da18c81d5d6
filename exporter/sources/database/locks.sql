-- name: locks
-- How many sessions wait for a lock on the table, and for how long? Or for one on a row of it: of
-- those only the first waits for the transaction that has the row, and holds the row's lock
-- meanwhile (locktype tuple); the others wait for that one. A session that has been at the table and
-- now waits for something else is none of them. By oid, so it answers while the table is locked.
WITH RECURSIVE {parts},
locks AS MATERIALIZED (
    SELECT pid, locktype, granted, waitstart,
           relation IN (SELECT oid FROM parts)
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AS here
      FROM pg_locks
     WHERE pid <> pg_backend_pid())
SELECT (SELECT count(*) FROM parts) AS parts,
       count(DISTINCT pid) AS waiters,
       coalesce(max(greatest(0, extract(epoch FROM clock_timestamp() - waitstart))), 0)::float8 AS longest
  FROM locks
 WHERE NOT granted
   AND (here OR pid IN (SELECT pid FROM locks WHERE here AND locktype = 'tuple'));
