"""SafeTab's records to noisy answers."""
