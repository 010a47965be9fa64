"""Audits: what privacy loss was really spent. Public mathematics on counts that whoever calls may read."""
