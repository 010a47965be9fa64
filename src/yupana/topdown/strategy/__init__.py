"""What queries tell of a histogram on the geolevels of a tree, and what answers need of it. Public."""
