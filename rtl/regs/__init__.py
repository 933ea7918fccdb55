"""Everything that is generated from `rtl/cuelight.rdl`: `python -m regs` (in `rtl/`), or `make regs`."""
