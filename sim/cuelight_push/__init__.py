"""The push side of a board on PCI Express, compiled, with a hard block and a host made of Python around it."""
