"""All targets."""

from . import calls, commands, files, submissions, tables

TARGETS = {target.name: target for module in (files, tables, commands, calls, submissions) for target in module.TARGETS}
