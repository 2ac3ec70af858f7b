"""What everything runs on: compiled kernels, threads, memory, files."""
