"""Recordings: attract files of the game, which validate the simulator, and recordings of episodes."""

from __future__ import annotations

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
    from nclone_env.replay.play import Play as Play
    from nclone_env.replay.play import ghosts_of as ghosts_of
    from nclone_env.replay.play import open_window as open_window
    from nclone_env.replay.play import window_size as window_size
    from nclone_env.replay.recording import RECORDING_SUFFIX as RECORDING_SUFFIX
    from nclone_env.replay.recording import is_any_recording as is_any_recording
    from nclone_env.replay.recording import is_recording as is_recording
    from nclone_env.replay.recording import load_any_recording as load_any_recording
    from nclone_env.replay.recording import load_verified as load_verified
    from nclone_env.replay.recording import recording_name as recording_name
    from nclone_env.replay.recording import write_recording as write_recording
    from nclone_env.replay.showing import show as show
    from nclone_env.replay.verification import STATE_NAMES as STATE_NAMES
    from nclone_env.replay.verification import verdict as verdict
    from nclone_env.replay.video import VIDEO_SUFFIXES as VIDEO_SUFFIXES
    from nclone_env.replay.video import frame_rate as frame_rate
    from nclone_env.replay.video import named_level as named_level
    from nclone_env.replay.view import View as View
    from nclone_env.replay.view import view_size as view_size
    from nclone_env.replay.watch import WatchedRun as WatchedRun
    from nclone_env.replay.watch import arranged as arranged
    from nclone_env.replay.watch import grid_pictures as grid_pictures
    from nclone_env.replay.watch import run_pictures as run_pictures

__all__, __getattr__, __dir__ = face(__name__)
