"""Benchmark tracks: results that anyone can prove again from the inputs of every episode."""

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # the public names, each imported on first use
    from nclone_env.benchmark.attempts import Run as Run
    from nclone_env.benchmark.datasets import Played as Played
    from nclone_env.benchmark.datasets import export_dataset as export_dataset
    from nclone_env.benchmark.datasets import played as played
    from nclone_env.benchmark.evaluation import evaluate as evaluate
    from nclone_env.benchmark.scores import Score as Score
    from nclone_env.benchmark.scores import interquartile_mean as interquartile_mean
    from nclone_env.benchmark.scores import performance_profile as performance_profile
    from nclone_env.benchmark.submission import Submission as Submission
    from nclone_env.benchmark.submission import read_submission as read_submission
    from nclone_env.benchmark.track import Track as Track
    from nclone_env.benchmark.track import load_track as load_track
    from nclone_env.benchmark.track import training_levels as training_levels
    from nclone_env.benchmark.verification import Verification as Verification
    from nclone_env.benchmark.verification import verify as verify

if TYPE_CHECKING:  # for other rooms
    from nclone_env.benchmark.attempts import compile_kernels
    from nclone_env.benchmark.entries import Entered, Order, of_recordings
    from nclone_env.benchmark.results import write_results
    from nclone_env.benchmark.shown import recordings_of
    from nclone_env.benchmark.submission import check_entry, saved
    from nclone_env.benchmark.track import TRACK_NAMES
    from nclone_env.benchmark.verification import entry_faults

__getattr__, __dir__ = face(__name__)
