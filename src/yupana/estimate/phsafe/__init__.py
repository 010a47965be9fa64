"""Final tables of the S-DHC, estimated from a release of PHSafe."""
