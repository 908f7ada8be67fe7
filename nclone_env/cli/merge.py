"""``nclone-env merge``: join the shards of a job."""

from pathlib import Path

from tyro.conf import Positional

from nclone_env.cli.output import check_all_free, check_exists, counted
from nclone_env.cli.progress import say
from nclone_env.jobs import merged


def merge_shards(folders: Positional[tuple[Path, ...]], output: Path, force: bool = False) -> int:
    """Join the shards of a job: write what its command would have written in one process.

    Args:
        folders: folders of the journals of --shard; each shard of the job is to be in one of them, complete.
        output: file or folder, as --output of the command without --shard.
        force: overwrite existing files.
    """
    for folder in folders:
        check_exists("folders", folder, "a folder of journals")
    job, results = merged(folders)
    check_all_free(job.files(output), force)
    job.write(output, results)
    say(f"wrote {output}, {counted(results.header['total'], 'result')} of {counted(len(results.journals), 'shard')}")
    return 0
