"""Programs whose output is quoted in the README and in `docs/`. They measure time, so no test depends on them."""
