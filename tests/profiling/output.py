"""What scripts print."""


def lines(capsys) -> list[str]:
    """Return what was printed after the line about the machine."""
    first, *rest = capsys.readouterr().out.splitlines()
    assert "Numba" in first
    return rest
