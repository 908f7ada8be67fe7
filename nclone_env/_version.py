"""The version of the package, which everything reads from here."""

__version__ = "0.1.0"
