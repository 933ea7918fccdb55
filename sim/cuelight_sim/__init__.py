"""The scheduler's golden model in plain Python, and what drives it in lockstep with the RTL."""
