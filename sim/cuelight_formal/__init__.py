"""Formal proofs of the scheduler's rooms: `python -m cuelight_formal`."""
