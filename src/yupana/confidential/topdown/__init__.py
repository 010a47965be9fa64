"""TopDown's records to noisy measurements, and its runs."""
