"""Life and death of the ninja (physics 01, section 12)."""

from nclone_env.constants import CELEBRATING, DEAD, DISABLED, DYING, FALL_GRAVITY, JUMPING
from nclone_env.jit import kernel


@kernel
def is_targetable(ninja):
    """Return whether entities can act on the ninja; one killed earlier in the frame still counts (section 12.1)."""
    state = ninja["state"]
    return state != DEAD and state != CELEBRATING and state != DISABLED


@kernel
def kill(ninja):
    """Kill the ninja unless it is dead, dying or has won (section 12.2)."""
    leave_play(ninja, DYING)


@kernel
def win(ninja):
    """Let the ninja win unless it is dead, dying or has won already (section 12.4)."""
    leave_play(ninja, CELEBRATING)


@kernel
def leave_play(ninja, state):
    """Enter a final state unless the ninja is in one already; a jump in progress ends."""
    if ninja["state"] < DEAD:
        if ninja["state"] == JUMPING:
            ninja["gravity"] = FALL_GRAVITY
        ninja["state"] = state
