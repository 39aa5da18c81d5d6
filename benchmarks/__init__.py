"""Programs whose output is quoted in the README and in docs/postgresql.md. They measure time, so no test depends on them."""
