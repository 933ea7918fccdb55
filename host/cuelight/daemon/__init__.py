"""The daemon: an OpenAI-compatible service with latency tiers, next to the lanes."""
