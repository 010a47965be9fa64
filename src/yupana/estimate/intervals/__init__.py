"""Confidence intervals for cells, sums and ratios of a release."""
