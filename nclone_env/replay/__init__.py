"""Recordings: attract files of the game, which validate the simulator, and recordings of episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # the names below, for type checkers and the reference
    from nclone_env.replay.recorder import EpisodeRecorder
    from nclone_env.replay.recording import Recording, load_recording
    from nclone_env.replay.verification import Verdict, verify
    from nclone_env.replay.video import recording_pictures, write_video

__all__ = [
    "EpisodeRecorder",
    "Recording",
    "Verdict",
    "load_recording",
    "recording_pictures",
    "verify",
    "write_video",
]

__getattr__, __dir__ = face(
    __name__,
    {
        "nclone_env.replay.recorder": ("EpisodeRecorder",),
        "nclone_env.replay.recording": ("Recording", "load_recording"),
        "nclone_env.replay.verification": ("Verdict", "verify"),
        "nclone_env.replay.video": ("recording_pictures", "write_video"),
    },
)
