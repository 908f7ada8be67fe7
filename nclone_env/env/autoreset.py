"""When the next episode begins: Gymnasium's modes and the codes of the kernels for them."""

from __future__ import annotations

from gymnasium.vector import AutoresetMode

from nclone_env.env.compiled import records
from nclone_env.errors import ConfigError, shortened

AUTORESET_CODES = {
    AutoresetMode.NEXT_STEP: records.NEXT_STEP,
    AutoresetMode.SAME_STEP: records.SAME_STEP,
    AutoresetMode.DISABLED: records.DISABLED,
}


def autoreset_mode_of(mode: AutoresetMode | str) -> AutoresetMode:
    """Return Gymnasium's mode given as such or by its value.

    Raises:
        ConfigError: if there is no such mode; the message lists the values.
    """
    try:
        return AutoresetMode(mode)
    except ValueError as error:
        listed = ", ".join(repr(known.value) for known in AUTORESET_CODES)
        raise ConfigError(
            f"autoreset_mode: expected an AutoresetMode or one of {listed}, got {shortened(mode)}"
        ) from error
