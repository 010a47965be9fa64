"""Suppression of small and zero counts in released tables."""
