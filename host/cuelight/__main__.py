"""`python -m cuelight`: the command line."""

import sys

from cuelight.cli import main

sys.exit(main())
