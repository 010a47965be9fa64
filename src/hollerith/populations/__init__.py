"""Population groups: areas times characteristic iterations of race and ethnicity. Public."""
