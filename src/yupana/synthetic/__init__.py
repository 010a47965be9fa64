"""Invented people: a synthetic census with its geography, by random numbers and public shares."""
