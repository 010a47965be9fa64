"""The guarantee: definitions of privacy loss, the laws of the noise and the exact sampler.

Nothing here knows a table, a file or a record. Budgets and scales are exact rationals; floating point
appears only in what is reported (epsilons, probabilities, quantiles), never in a draw.
"""
