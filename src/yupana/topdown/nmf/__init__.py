"""Noisy measurement files in the Census Bureau's Parquet layout (docs/noisy-measurement-files.md), written and read."""
