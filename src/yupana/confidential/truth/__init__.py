"""True counts beside a release, for audits."""
