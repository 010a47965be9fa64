"""Records in shards, counted on any engine."""
