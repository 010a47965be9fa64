"""The atlas: pages on which anybody reads a release, error first."""
