"""Dictionaries of record files, as CSPro, IPUMS, SPSS, Stata, SAS and others write them. Public."""
