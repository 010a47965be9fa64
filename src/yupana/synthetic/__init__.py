"""Invented people: a synthetic census with its geography, from random numbers and public shares."""
