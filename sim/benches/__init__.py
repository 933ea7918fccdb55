"""Protocol scripts for the RTL, run by cocotb on Verilator and Icarus: `make sim`."""
