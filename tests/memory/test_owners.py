from __future__ import annotations

from nclone_env.memory.measurements import Advice, OwnedNode
from nclone_env.memory.owners import chosen, copies, of_kept_results


def node(name, size, shared=0, depth=1):
    return OwnedNode(depth, name, shared, size, size, mapped=False)


def test_batches_alive_at_a_time_are_counted_beyond_the_first():
    owners = (node("all", 4000, depth=0), node("player_frame x 3", 3000), node("rewards x 2", 200), node("state", 800))
    assert list(copies(owners, "player_frame")) == [(3, 3000)]
    (advice,) = of_kept_results(owners)
    assert (advice.option, advice.saved_bytes) == ("out=", 2000 + 100)
    assert "3 batches of observations are alive" in advice.text
    assert not list(of_kept_results((node("player_frame x 1", 3000),)))  # negative control


def test_kept_final_observations_and_groups_are_named():
    owners = (node("outputs", 500), node("outputs of group 0", 300), node("final observations", 700))
    assert [(advice.option, advice.saved_bytes) for advice in of_kept_results(owners)] == [
        ("final_obs", 700),
        ("num_groups=1", 300),
    ]


def test_what_saves_next_to_nothing_is_left_out_and_the_rest_sorted():
    owners = (node("all", 1000, shared=9_000_000, depth=0),)
    candidates = [Advice(f"{saved}", saved, "") for saved in (60, 40, 700, -900, 300)]
    assert [advice.saved_bytes for advice in chosen(candidates, owners)] == [700, 300, 60]
