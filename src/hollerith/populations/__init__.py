"""Population groups: areas times characteristic iterations of race and ethnicity; their tables' cells. Public."""
