"""Whether a run learns to stay alive without learning to reach the exit.

On levels that are hard to complete by chance a policy first learns what kills it. Episodes get longer, the policy gets
surer of its actions, and hardly any episode wins: what it never reached cannot be learned. More steps do not help then;
episodes that begin along solutions do.
"""

import math
from dataclasses import dataclass

import numpy as np

from nclone_env.train.runs.run import TrainingRun

_SHARE = 0.25
"""Share of the steps of a run before which nothing is said."""
_HARDLY = 0.05
"""Success rate below which a run can be one that only stays alive."""
_CHANCE = 0.01
"""Success rate up to which a gain may be luck, whatever it was at first."""
_GAIN = 2.0
"""Growth of the success rate above which a run learns to win."""
_LONGER, _SURER = 1.25, 0.8
"""Growth of the frames of an episode, or fall of the entropy, by which a run learns something."""
_QUANTILE = 1.96  # of the normal distribution, for intervals of 95 %


@dataclass(frozen=True)
class Survival:
    """What a run has learned that only stays alive."""

    wins: int
    """Recent episodes, from the start of their level, that reached the exit."""
    episodes: int
    """Number of these episodes."""
    frames: tuple[float, float]
    """Mean frames of an episode, at first and now."""
    entropy: tuple[float, float]
    """Entropy of the policy in nats, at first and now."""

    def __str__(self) -> str:
        low, high = interval(self.wins, self.episodes)
        return (
            f"{self.wins:,} of {self.episodes:,} recent episodes won ({low:.1%} to {high:.1%}), hardly more than at "
            f"first, but they last {self.frames[1]:,.0f} frames instead of {self.frames[0]:,.0f}, and the entropy of "
            f"the policy went from {self.entropy[0]:.2f} to {self.entropy[1]:.2f}"
        )


def survival_of(run: TrainingRun) -> Survival | None:
    """Return what a run has learned if it only stays alive; None if it wins, learns to win, or may yet begin to.

    It does if a quarter of its steps are made, if with a confidence of 95 % it wins less than 5 % of its episodes and
    not more than twice as often as at first (or not more than 1 %), and if its episodes have become longer by a quarter
    or the entropy of its policy has fallen by a fifth. Only episodes from the start of their level count.
    """
    if run.counters.timesteps < _SHARE * run.config.total_timesteps:
        return None
    known = np.flatnonzero(~np.isnan(run.curve.rows.last("success_rate", len(run.curve.rows))))
    if not len(known):
        return None
    first, now = run.curve.rows[int(known[0])], run.curve.rows[-1]
    frames, entropy = ((first[name], now[name]) for name in ("mean_frames", "entropy"))
    wins, episodes = run.statistics.recent_wins()
    low, high = interval(wins, episodes)
    hardly_wins = high < _HARDLY and low <= max(_CHANCE, _GAIN * first["success_rate"])
    learns = frames[1] >= _LONGER * frames[0] or entropy[1] <= _SURER * entropy[0]
    return Survival(wins, episodes, frames, entropy) if hardly_wins and learns else None


def interval(wins: int, episodes: int) -> tuple[float, float]:
    """Return the 95 % interval of a success rate by Wilson's score, which holds for rates near 0 as well."""
    if not episodes:
        return 0.0, 1.0
    rate, weight = wins / episodes, _QUANTILE**2 / episodes
    middle = rate + weight / 2
    half = _QUANTILE * math.sqrt((rate * (1 - rate) + weight / 4) / episodes)
    return max(0.0, (middle - half) / (1 + weight)), min(1.0, (middle + half) / (1 + weight))
