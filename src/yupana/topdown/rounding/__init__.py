"""Estimates to whole counts that keep their sums."""
