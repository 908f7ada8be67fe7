"""Proofs that no solution of a level has fewer frames, and checks of their certificates."""

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # for other rooms, each imported on first use
    from nclone_env.prove.bounds import lower_bound
    from nclone_env.prove.check import CHECK_MEMORY, check_certificate
    from nclone_env.prove.exhaustive import make_reach, search
    from nclone_env.prove.proof import PROOF_MEMORY, prove, read_certificate

__all__, __getattr__, __dir__ = face(__name__)
