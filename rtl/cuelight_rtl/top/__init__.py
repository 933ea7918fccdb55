"""Tops: the scheduler fitted to a transport."""
