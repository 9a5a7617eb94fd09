"""Job files: the tables a command reads instead of options."""
