"""Waveforms of benches: read from a simulation, told in rows, and drawn."""
