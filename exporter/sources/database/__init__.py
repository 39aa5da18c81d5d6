"""Laravel's `database` driver: a jobs table in PostgreSQL."""
