"""PHSafe's records to noisy answers."""
