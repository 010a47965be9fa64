"""Records to exact counts."""
