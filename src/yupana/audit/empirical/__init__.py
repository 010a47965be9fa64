"""Empirical privacy loss: what published errors say about the noise of a release."""
