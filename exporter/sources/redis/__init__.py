"""Laravel's `redis` driver, and Horizon."""
