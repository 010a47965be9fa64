"""Approximate Monte Carlo: what a release is off, told by estimates made of the release as it was made of the truth."""
