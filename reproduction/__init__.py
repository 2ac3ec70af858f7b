"""The experiments of the LaptSNE paper, repeated next to other methods: ``python -m reproduction``."""
