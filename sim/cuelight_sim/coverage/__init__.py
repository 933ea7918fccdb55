"""Functional coverage: which situations of the device a run in lockstep came to, counted from writes and commits."""
