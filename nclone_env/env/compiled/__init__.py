"""Compiled code of a step: what runs for every environment without the interpreter."""
