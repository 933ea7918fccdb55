"""Native code of the host, in C++."""
