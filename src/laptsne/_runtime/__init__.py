"""Compiled kernels, threads, memory, and files: what the rest of the package runs on."""
