"""The identity of a Cuelight board on the PCI bus."""

from __future__ import annotations

__all__ = ["DEVICE_ID", "VENDOR_ID"]

VENDOR_ID = 0x10EE
"""Of the FPGA's maker, whose hard block is the endpoint: this project has none of its own."""

DEVICE_ID = 0xC0E1
"""Chosen here: none of that maker's own designs has it. What is behind it is certain from IDENTITY.MAGIC only."""
