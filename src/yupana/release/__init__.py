"""A release on disk: tables and a manifest, written whole or not at all, and checked against their plan. Public."""
