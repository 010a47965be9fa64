"""SafeTab-P: the Detailed DHC-A, totals and sex by age of detailed race and ethnicity groups."""
