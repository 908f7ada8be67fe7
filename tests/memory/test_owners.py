import dataclasses

from nclone_env.memory.explain.stats import chosen, compute_stats, copies, of_kept_results
from nclone_env.memory.measure.measurements import Advice, OwnedNode, Snapshot, Stage
from nclone_env.memory.show import peak_parts, peak_section

from .by_hand import measurements


def node(name, size, shared=0, depth=1):
    return OwnedNode(depth, name, shared, size, size, mapped=False)


def test_batches_alive_at_a_time_are_counted_beyond_the_first():
    owners = (node("all", 4000, depth=0), node("player_frame x 3", 3000), node("rewards x 2", 200), node("state", 800))
    assert list(copies(owners, "player_frame")) == [(3, 3000)]
    (advice,) = of_kept_results(owners)
    assert (advice.option, advice.saved_bytes) == ("out=", 2000 + 100)
    assert "3 batches of observations are alive" in advice.text
    assert not list(of_kept_results((node("player_frame x 1", 3000),)))  # negative control


def test_kept_final_observations_are_named():
    owners = (node("outputs", 500), node("final observations", 700))
    assert [(advice.option, advice.saved_bytes) for advice in of_kept_results(owners)] == [("final_obs", 700)]


def test_what_saves_next_to_nothing_or_takes_memory_is_left_out_and_the_rest_sorted():
    owners = (node("all", 1000, shared=9_000_000, depth=0),)
    candidates = [Advice(f"{saved}", saved, "") for saved in (60, 40, 700, -900, 300)]
    more = Advice("--num-envs 8", -900, "")
    assert chosen([*candidates[3:4], more], owners) == (more,)
    assert [advice.saved_bytes for advice in chosen(candidates, owners)] == [700, 300, 60]


def parts(**changes):
    return dict(peak_parts(compute_stats(dataclasses.replace(measurements(), **changes))))


def test_the_parts_sum_up_to_the_peak():
    found = parts()
    assert found == {
        "interpreter": 9_000,
        "libraries": 46_000,
        "compiled code": 10_000,
        "environments": 6_000,
        "the rest": 97_000 - 71_000,
    }
    assert sum(found.values()) == compute_stats(measurements()).peak_bytes


def test_a_training_run_is_split_into_environments_and_trainer():
    owners = (
        OwnedNode(0, "training run", 1_000, 9_000, 9_500, mapped=False),
        OwnedNode(1, "rollout storage", 0, 4_000, 4_000, mapped=False),
        OwnedNode(1, "groups", 1_000, 5_000, 5_500, mapped=False),
        OwnedNode(2, "vector environment", 1_000, 4_000, 4_500, mapped=False),
        OwnedNode(3, "environments", 1_000, 3_000, 3_500, mapped=False),
        OwnedNode(2, "episodes", 0, 1_000, 1_000, mapped=False),
    )
    found = parts(owners=owners)
    assert (found["environments"], found["trainer"]) == (4_500, 5_000)


def test_a_script_is_what_came_after_imports_and_compilation():
    stages = tuple(
        Stage(name, rss, rss, rss, rss + 500, "by hand")
        for name, rss in (("before", 30_000), ("imports and compilation", 70_000), ("after", 80_000))
    )
    found = parts(stages=stages, owners=(), snapshots=())
    assert found == {"before the program": 30_000, "imports and compilation": 40_000, "the program": 10_500}


def test_workers_are_named_besides():
    snapshot = Snapshot(1, 90_000, 80_000, 70_000, 4096, 50_000, 7_000, 6_000)
    stats = compute_stats(dataclasses.replace(measurements(), snapshots=(snapshot,)))
    assert peak_section(stats).notes == ["Worker processes take 4.0 KB besides, without file pages."]


def test_there_are_no_parts_without_a_peak():
    assert parts(stages=()) == {}
    assert peak_section(compute_stats(dataclasses.replace(measurements(), stages=()))).rows == []


def test_memory_that_was_freed_before_the_peak_is_no_part_of_it():
    stages = tuple(
        Stage(name, rss, rss, rss, peak, "by hand")
        for name, rss, peak in (("libraries", 50_000, 0), ("compiled code", 90_000, 95_000), ("made", 70_000, 80_000))
    )
    assert parts(stages=stages) == {"libraries": 50_000, "compiled code": 30_000}
