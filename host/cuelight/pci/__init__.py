"""PCI configuration space: what a function's registers say. Sections are of PCI Express Base Specification 5.0."""
