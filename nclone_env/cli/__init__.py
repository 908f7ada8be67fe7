"""The command line: one module per subcommand, assembled in ``app``."""
