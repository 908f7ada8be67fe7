"""Work on many levels: by any executor, or in shards that are killed, restarted and merged."""

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # the public names, each imported on first use
    from nclone_env.jobs.evaluating import Evaluating as Evaluating
    from nclone_env.jobs.generating import Generating as Generating
    from nclone_env.jobs.job import Job as Job
    from nclone_env.jobs.job import merge as merge
    from nclone_env.jobs.job import run as run
    from nclone_env.jobs.shard import Shard as Shard
    from nclone_env.jobs.showing import Showing as Showing
    from nclone_env.jobs.solving import Solving as Solving
    from nclone_env.jobs.validating import Validating as Validating

if TYPE_CHECKING:  # for other rooms
    from nclone_env.jobs.job import merged
    from nclone_env.jobs.solving import Row

__getattr__, __dir__ = face(__name__)
