"""Ways to reach a device."""
