"""Report of the conformance test at the end of a run."""

from .shared import COMPARISONS


def pytest_configure(config):
    config.stash[COMPARISONS] = {}


def pytest_terminal_summary(terminalreporter, config):
    for name, comparison in config.stash[COMPARISONS].items():
        terminalreporter.write_line(f"conformance of {name}: {comparison}")
