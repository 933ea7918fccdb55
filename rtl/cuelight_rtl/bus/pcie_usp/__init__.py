"""PCI Express through the hard block of UltraScale+ devices."""
