#!/bin/sh
# Installs what the benches need besides $PYTHON's packages. Without Icarus they run on Verilator only, unless $SIM asks for it.
set -eu

library=
[ -n "$("$PYTHON" -m find_libpython)" ] || library=$("$PYTHON" -c 'import sys; print("libpython%d.%d" % sys.version_info[:2])')
[ -z "$library" ] || ./debian.sh "$library"
[ "$SIM" = verilator ] || command -v iverilog >/dev/null || ./debian.sh iverilog || [ -z "$SIM" ]
