"""All targets."""

from . import arguments, calls, commands, files, submissions, tables

TARGETS = {
    target.name: target
    for module in (files, tables, arguments, commands, calls, submissions)
    for target in module.TARGETS
}
