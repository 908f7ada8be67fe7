"""``python -m nclone_env``: the command line."""

import sys

from nclone_env.cli.app import main

sys.exit(main())
