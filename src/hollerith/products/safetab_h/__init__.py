"""SafeTab-H: the Detailed DHC-B, household type and tenure of detailed race and ethnicity groups."""
