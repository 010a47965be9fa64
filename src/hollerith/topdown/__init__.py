"""The TopDown Algorithm: noisy measurements of a hierarchy in, consistent non-negative integer counts out."""
