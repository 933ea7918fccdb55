"""Ways from a host to the scheduler's bus."""
