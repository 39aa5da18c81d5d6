"""A small Laravel-shaped world on an embedded PostgreSQL, and the incidents one can rehearse in it."""
