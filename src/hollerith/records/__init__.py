"""Confidential microdata: what the files look like, how they are read, checked and, for rehearsals, made up."""
