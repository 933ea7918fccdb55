"""Cuelight's scheduler in Amaranth; `scheduler.Scheduler` is the place to start reading."""
