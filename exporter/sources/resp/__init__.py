"""How a Redis is reached and asked, and Laravel's cache in one: for the queues in Redis, and for others' caches."""
