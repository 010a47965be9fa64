"""What SafeTab-P and SafeTab-H share: iterations, regions and settings. Public."""
