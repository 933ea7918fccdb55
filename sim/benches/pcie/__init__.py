"""Benches of the device on PCI Express."""
