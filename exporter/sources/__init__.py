"""One module or folder per source. Each has `settings` (no driver imported) and `open`, which makes a `Source`."""
