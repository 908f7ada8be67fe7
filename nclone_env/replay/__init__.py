"""Recordings: attract files of the game, which validate the simulator, and recordings of episodes."""

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # the public names, each imported on first use
    from nclone_env.replay.recorder import EpisodeRecorder as EpisodeRecorder
    from nclone_env.replay.recording import Recording as Recording
    from nclone_env.replay.recording import load_recording as load_recording
    from nclone_env.replay.verification import Verdict as Verdict
    from nclone_env.replay.verification import verify as verify
    from nclone_env.replay.video import recording_pictures as recording_pictures
    from nclone_env.replay.video import write_video as write_video

if TYPE_CHECKING:  # for other rooms
    from nclone_env.replay.play import Play, ghosts_of, open_window, window_size
    from nclone_env.replay.recording import (
        RECORDING_SUFFIX,
        is_any_recording,
        is_recording,
        load_any_recording,
        load_verified,
        recording_name,
        write_recording,
    )
    from nclone_env.replay.showing import show
    from nclone_env.replay.verification import STATE_NAMES, verdict
    from nclone_env.replay.video import VIDEO_SUFFIXES, frame_rate, named_level
    from nclone_env.replay.view import View, view_size
    from nclone_env.replay.watch import WatchedRun, arranged, grid_pictures, run_pictures

__all__, __getattr__, __dir__ = face(__name__)
