"""PHSafe, the Supplemental Demographic and Housing Characteristics File (S-DHC) of the 2020 Census."""
