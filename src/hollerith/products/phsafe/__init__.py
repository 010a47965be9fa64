"""PHSafe, the Supplemental Demographic and Housing Characteristics File (S-DHC) of the 2020 Census.

Public: `spec`, `config`, `plan`, `production`, `tables`, `verify`, `errors`. Confidential: `count`, `run`, `accuracy`,
`demonstration`.
"""
