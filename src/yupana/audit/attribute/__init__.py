"""Attribute privacy loss: what a release tells of one attribute of an individual."""
