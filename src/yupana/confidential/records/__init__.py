"""Confidential records: readers, rules, findings."""
