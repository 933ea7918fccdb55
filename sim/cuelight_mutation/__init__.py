"""Mutation check: plants faults in the RTL, and sees which proofs and tests notice: `python -m cuelight_mutation`."""
