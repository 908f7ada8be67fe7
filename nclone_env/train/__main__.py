"""``python -m nclone_env.train``: ``nclone-env train``, for launchers of several processes such as ``torchrun``."""

import sys

from nclone_env.cli.app import main

sys.exit(main(["train", *sys.argv[1:]]))
