"""Recordings: attract files of the game, which validate the simulator, and recordings of episodes."""

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # the public names, each imported on first use
    from nclone_env.replay.recorder import EpisodeRecorder as EpisodeRecorder
    from nclone_env.replay.recording import Recording as Recording
    from nclone_env.replay.recording import load_recording as load_recording
    from nclone_env.replay.verification import Verdict as Verdict
    from nclone_env.replay.verification import verify as verify
    from nclone_env.replay.video import write_video as write_video
    from nclone_env.replay.watch import recording_pictures as recording_pictures

if TYPE_CHECKING:  # for other rooms
    from nclone_env.replay.play import play_in_window
    from nclone_env.replay.recording import (
        RECORDING_SUFFIX,
        WatchedRun,
        is_any_recording,
        load_any_recording,
        load_verified,
        named_level,
        recording_files,
        recording_name,
        shown_name,
        write_recording,
    )
    from nclone_env.replay.verification import STATE_NAMES
    from nclone_env.replay.video import VIDEO_SUFFIXES, frame_rate
    from nclone_env.replay.view import compile_kernels
    from nclone_env.replay.watch import arranged, grid_pictures, run_pictures, show

__getattr__, __dir__ = face(__name__)
