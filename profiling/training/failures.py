"""Why does a policy lose? Its lost attempts by cause: time, what killed the ninja, or a fall.

Each level is played once per attempt with sampled actions, and lost attempts are replayed. Out of time, the ninja stood
still if it stayed within a cell for the last ten seconds. A death is replayed up to the step before it: the nearest
entity that is deadly by its touch, within the distance that both can cover in a step, is the cause; otherwise the
nearest one that kills from a distance; otherwise a fall or a crush.

    python -m profiling.training.failures game-motion --levels pack.txt --attempts 3
"""

from collections import Counter

import numpy as np
import tyro

from nclone_env.env import NPlusPlusEnv
from nclone_env.game import CELL_SIZE, KINDS, RADIUS, WORLD_HEIGHT, WORLD_WIDTH
from nclone_env.obs.spec import ENTITY_STATE, GAME_STATE, columns
from nclone_env.train import LevelResult, evaluate, load_policy
from profiling.measure import describe

_AT, _STATE = columns(ENTITY_STATE), columns(GAME_STATE)
_LAST = 150  # steps of four frames, ten seconds
_UNIT, _RADIUS_UNIT = 528.0, 24.0  # pixels, of offsets and radii in ``entity_states``
_REACH = 32.0  # pixels that the ninja and an entity approach each other in a step of four frames


def cause(env: NPlusPlusEnv, result: LevelResult) -> str:
    """Return how an attempt ended."""
    if result.success_rate:
        return "won"
    seen, _ = env.reset(options={"level": result.level})
    places = []
    for action in result.actions[:-1]:
        places.append(seen["game_state"][[_STATE.x, _STATE.y]])
        seen, *_ = env.step(int(action))
    if not result.death_rate:
        moved = np.ptp(places[-_LAST:], axis=0) * (WORLD_WIDTH / 2, WORLD_HEIGHT / 2)
        return "out of time, standing still" if (moved < CELL_SIZE).all() else "out of time, moving"
    count = int(seen["entity_count"][0])
    rows, kinds = seen["entity_states"][:count], seen["entity_kinds"][:count]
    offsets = np.hypot(rows[:, _AT.relative_x], rows[:, _AT.relative_y]) * _UNIT
    gaps = offsets - rows[:, _AT.radius] * _RADIUS_UNIT - RADIUS
    touching = np.where((rows[:, _AT.deadly] > 0) & (gaps < _REACH), gaps, np.inf)
    shooting = np.where(rows[:, _AT.shoots] > 0, gaps, np.inf)
    for distances, said in ((touching, "{}"), (shooting, "shot by {}")):
        if np.isfinite(distances.min(initial=np.inf)):
            return said.format(KINDS[kinds[distances.argmin()]].name)
    return "fall or crush"


def main(policy: tyro.conf.Positional[str], levels: tuple[str, ...], attempts: int = 3, max_frames: int = 5400) -> None:
    """Print the share of attempts by the way in which they ended.

    Args:
        policy: checkpoint, folder of a run, or bundled policy.
        levels: to play.
        attempts: episodes of each level.
        max_frames: time limit; by default that of the game.
    """
    loaded = load_policy(policy)
    played = loaded.environment.replace(levels=levels, mirrored=False, max_frames=max_frames)
    counts: Counter[str] = Counter()
    with NPlusPlusEnv(played.replace(observations=("game_state", "entity_states"), observation={})) as env:
        for seed in range(attempts):
            counts.update(cause(env, result) for result in evaluate(loaded.network, played, "sampled", 1, seed=seed))
    print(describe())
    for name, count in counts.most_common():
        print(f"{count / counts.total():7.1%}  {name}")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
