"""The experiments of the LaptSNE paper, run again and beside other methods: the command ``laptsne reproduce``."""
