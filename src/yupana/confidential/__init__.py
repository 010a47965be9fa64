"""Everything that sees a record or a true count, and nothing else."""
