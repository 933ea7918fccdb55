"""What holds for all tests."""

import os

# Before torch is loaded, in workers of xdist too: threads that spin while they wait starve the other worker's.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
