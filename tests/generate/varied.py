"""Print the digest of a variant (``python -m tests.generate.varied LEVEL SEED NUMBER``)."""

import sys

from nclone_env.generate.variants import make_variant
from nclone_env.level.load import load_level

if __name__ == "__main__":
    level, seed, number = sys.argv[1:]
    sys.stdout.write(make_variant(load_level(level), int(seed), int(number)).level.raw.digest + "\n")
