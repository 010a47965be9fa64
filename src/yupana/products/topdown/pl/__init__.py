"""The summary files of P.L. 94-171 in the Bureau's layout of 2020: read, written, and made from a release."""
