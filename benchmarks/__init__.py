"""Programs whose output is quoted in the README. They measure time, so no test depends on them."""
