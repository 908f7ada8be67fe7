"""Mistakes that people make: each is answered by one line that says what was expected, got, and how to go on."""

import os

import pytest

from nclone_env.cli.app import main
from nclone_env.cli.arguments import with_flags
from nclone_env.errors import ConfigError
from nclone_env.options import flat
from nclone_env.replay import Recording
from nclone_env.replay.recording import write_recording

FLAGS = [
    ("--shared-trunk=False", {"shared_trunk": False}),
    ("--shared_trunk=false", {"shared_trunk": False}),
    ("--shared_trunk=TRUE", {"shared_trunk": True}),
    ("--no-shared-trunk=True", {"shared_trunk": False}),
    ("--no_shared_trunk=False --anneal=False", {"shared_trunk": True, "anneal": False}),
    ("--mirrored=True --local_position=True", {"mirrored": True, "local_position": True}),
    ("--name=True", {"name": "True"}),
    ("--name False", {"name": "False"}),
]
"""Options of ``train``, and fields of its configuration."""


@pytest.mark.parametrize(("words", "fields"), FLAGS, ids=[words for words, _ in FLAGS])
def test_flags_may_be_given_as_sweeps_write_them(monkeypatch, capsys, words, fields):
    def end(config, *others):
        options = flat(config)
        raise ConfigError(repr({name: options[name] for name in fields}))

    monkeypatch.setattr("nclone_env.train.check_memory", end)
    assert main(["train", *words.split()]) == 2
    assert capsys.readouterr().err == f"nclone-env: {fields!r}\n"


def test_values_of_other_options_and_of_programs_are_left_alone():
    words = ["--name=True", "--flag=true", "--group.flag=false", "--", "--flag=False"]

    def show_help(command):
        assert command == ["some", "--help"]
        print("--name TEXT --flag, --no-flag --group.flag, --group.no-flag")  # noqa: T201

    assert with_flags(words, show_help, ["some"]) == ["--name=True", "--flag", "--group.no-flag", "--", "--flag=False"]
    assert with_flags(words[3:], show_help, ["other"]) == words[3:]  # nothing is asked


REPEATED = [
    ("watch runs/x --levels first-steps --seed 1 --levels jumps", "--levels: expected once, with all its"),
    ("train --observations=game_state --levels jumps --observations locals", "--observations: expected once"),
    ("train --levels jumps --warm_start a --warm-start b c --warm-start d", "--warm-start: expected once, with all"),
    ("benchmark run Builtin-v1 --seed 0 --seed 1 --seed=2", "behind it, got it 3 times"),
    ("gallery --recordings a.replay --recordings b.replay", "--recordings: expected once"),
    ("profile --levels jumps --levels hazards", "--levels: expected once"),
    ("compare runs/x --where seed=1 --where seed=2", "--where: expected once"),
]
"""The parser would take the values of the last, as of ``--seed 1 --seed 2`` where a seed is one number."""


@pytest.mark.parametrize(("words", "answer"), REPEATED, ids=[words for words, _ in REPEATED])
def test_an_option_of_several_values_is_given_once(capsys, words, answer):
    assert main(words.split()) == 2
    assert answer in capsys.readouterr().err


def test_of_single_values_the_last_counts(capsys):
    main(["levels", "show", "nowhere", "--theme", "light", "--theme", "dark"])
    assert "expected once" not in capsys.readouterr().err


@pytest.mark.parametrize("columns", ["1", "2", "3", "5", "9"])
def test_help_ends_on_a_narrow_terminal(monkeypatch, capsys, columns):
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit):
        main(["solve", "--help"])
    assert "--output" in capsys.readouterr().out
    assert os.environ["COLUMNS"] == columns


RECORDING = write_recording(Recording.of("first-steps/01-walk", [2]))
MISTAKES = [
    ("zzz", "command: expected one of train, evaluate, "),
    ("trian", "got 'trian'; did you mean 'train'?"),
    ("levels", "command: expected one of list, show, validate, convert, cache, generate, got none; nclone-env levels"),
    ("levels check mine.toml", "got 'check'; did you mean 'validate'?"),
    ("replay play a.replay", "got 'play'; did you mean 'nclone-env play'?"),
    ("validate mine.toml", "got 'validate'; did you mean 'levels validate'?"),
    ("enjoy builtin", "got 'enjoy'; did you mean 'watch'?"),
    ("replay", "command: expected one of verify, convert, record, got none; nclone-env replay"),
    ("profile vecto", "expected one of vector, single, gym, sync, async, sb3, train, script, compare, got 'vecto'"),
    (
        "profile --observations game_stat",
        "did you mean 'game_state'? nclone-env profile vector --help",
    ),
    ("profile --steps 3g", "--steps: expected a whole number, such as 1000000, 1e6 or 1M, got '3g'"),
    ("profile --steps 0", "steps: expected a whole number of at least 1, got 0"),
    ("profile --estimate --num-envs 0", "num_envs: expected a whole number of at least 1, got 0"),
    ("profile --memory-limit 8GB", "memory_limit: expected with --estimate, got it without; add --estimate"),
    ("evaluate game-motion --attempts 0", "attempts: expected a whole number of at least 1, got 0"),
    ("evaluate game-motion --seed -1", "seed: expected a whole number of at least 0, got -1"),
    ("watch game-motion --seed -1", "seed: expected a whole number of at least 0, got -1"),
    ("run --profile-memory", "profile_memory: requires --headless"),
    ("run --num-envs 0", "num_envs, steps: expected whole numbers of at least 1, got 0 and 1000"),
    (
        "profile script nosuch.py",
        "path: expected a script, a module or MODULE:FUNCTION, got 'nosuch.py', which is no file",
    ),
    ("profile script a.py --n 5", "--n: there is no such option; did you mean '--json'? write -- before the options"),
    ("profile script -m mine", "path: expected a value, got none; write -- before the options of the script, and a"),
    ("profile script python a.py", "got 'python', which is no file; leave it out: the script is run by this"),
    ("levels show --level jumps", "level: expected a value, got --level; write its value alone; "),
    ("benchmark show --track=Builtin-v1", "track: expected a value, got --track=Builtin-v1; write its value alone"),
    ("train --lerning-rate 3", "--lerning-rate: there is no such option; did you mean '--learning-rate'?"),
    ("train --gamma 1", "--gamma: there is no such option; did you mean '--reward.gamma'?"),
    ("train --seed -1", "seed: expected a whole number from 0 to 2147483647, got -1"),
    ("train --device gpu", "--device: expected one of auto, cpu, cuda, got 'gpu'"),
    ("evaluate nowhere --episodes 0", "episodes: expected a whole number from 1 to 16777216, got 0"),
    ("solve jumps --output mine.toml", "output: expected a folder, got mine.toml, which is a file; name another"),
    ("train --output mine.toml", "output: expected a folder, got mine.toml, which is a file; name another"),
    ("train --learner pppo", "learner: expected one of ppo, got 'pppo'; did you mean 'ppo'?"),
    ("evaluate builtin --output mine.toml/a", "output: expected a folder, got mine.toml, which is a file; name"),
    ("profile --output mine.toml/a/b", "output: expected a folder, got mine.toml, which is a file; name another"),
    ("benchmark show Builtin", "track: expected one of Builtin-v1, "),
    ("benchmark run Builtin-v1 --budget 1g", "budget: expected one of 4m, 100m, 30min, got '1g'"),
    ("benchmark run Builtin-v1 --baseline sac", "baseline: expected one of ppo, clone, random, "),
    ("benchmark run Builtin-v1 --baseline clone", "budget: expected one in seconds for the baseline clone, got 4m"),
    (
        "benchmark run Builtin-v1 --mode pixels --baseline nearest-exit",
        "observations: expected those of mode 'pixels'",
    ),
    ("benchmark run Builtin-v1 --baseline random --steps 5", "got 5; leave --steps out"),
    ("benchmark run Builtin-v1 --steps 16383", "steps: expected 16,384 to 4,000,000 for 4m, got 16,383"),
    ("benchmark run Builtin-v1 --packs x", "packs: expected a pack, got 'x', which does not exist"),
    ("benchmark run Builtin-v1 --packs S=", "packs: expected NAME=FILE such as SI=SI.txt, or "),
    ("benchmark verify none.zip", "files: expected a submission, got 'none.zip', which does not exist"),
    ("merge --output x", "folders: expected journals of --shard, got no folder\n"),
    ("merge mine.toml", "--output: expected a value, got none"),
    ("policies push builtin", "name: expected a value, got none"),
    ("train --num-envs x", "--num-envs: expected a whole number, such as 1000000, 1e6 or 1M, got 'x'"),
    ("train --num-envs", "--num-envs: expected a value, got none"),
    ("train --num-envs 0", "num_envs: expected a whole number"),
    ("train --learning-rate fast", "--learning-rate: expected a number, got 'fast'"),
    *(
        (f"train {word}", f"expected no more, got {got!r}; a flag is --flag, --no-flag, --flag=True or --flag=False; ")
        for word, got in (("--anneal=0", "0"), ("--anneal no", "no"), ("--mirrored=None", "None"), ("--mirrored=", ""))
    ),
    ("train jumps", "arguments: expected no more, got 'jumps'; nclone-env train --help explains the arguments"),
    ("train --levels jumps/01-stair", "got 'jumps/01-stair'; did you mean 'jumps/01-stairs'?"),
    ("train --levels nosuch.toml", "level: expected a level file, got 'nosuch.toml', which does not exist"),
    ("train --resume nowhere", "nowhere: expected a checkpoint file, but the file does not exist; pass the folder"),
    ("train --dtype float8", "--dtype: expected one of float32, float16, got 'float8'; did you mean 'float32'?"),
    ("evaluate", "checkpoint: expected a value, got none; nclone-env evaluate --help explains the arguments"),
    ("compare nowhere", "runs: expected at least one run to compare, got none"),
    ("compare a --rate 90", "rate: expected a number above 0 and at most 1, got 90.0"),
    ("compare a --output x.svg", "output: expected a name ending in .png, got 'x.svg'"),
    ("watch bultin", "did you mean 'builtin'?"),
    ("train --resume builtin", "to begin a new run with this policy pass --init builtin"),
    ("policies show bultin", "policy: expected one of builtin"),
    ("compare", "runs: expected folders of runs, got none; pass for example runs/*"),
    ("play --scale big", "--scale: expected a number, got 'big'; nclone-env play --help explains the arguments"),
    ("play --ghost mine.toml jumps", "put levels before --ghost, which takes all words behind it"),
    ("watch --levels jumps builtin", "got none; put sources before --levels, which takes all words behind it"),
    ("play jumps --ghost x.replay y", "ghost: expected a recording, got 'x.replay', which does not exist\n"),
    ("levels list generated:0-5:cave", "behind the numbers, got 'generated:0-5:cave'"),
    ("play --from x.replay", "from: expected a recording, got 'x.replay', which does not exist"),
    ("play --frame 3", "frame: expected with --from, got it without"),
    ("play jumps --scale 9 --output new", "scale: expected a number from 0.1 to 4, got 9.0"),
    ("play jumps --output mine.toml/x", "output: expected a folder, got mine.toml, which is a file; name another"),
    ("play nosuch", "level: expected a built-in set or level"),
    ("watch", "sources: expected at least one checkpoint, folder of a run, policy or recording, got none"),
    ("watch x.replay", "sources: expected a checkpoint, the folder of a run, a recording or a policy (builtin"),
    ("watch a.replay --levels jumps", "levels: expected none for recordings, which have a level of their own"),
    ("watch a.replay --views 0", "views: expected a whole number from 1 to 64, got 0"),
    ("watch a.replay --scale -1", "scale: expected a number from 0.1 to 4, got -1.0"),
    ("watch builtin --candidates 0", "candidates: expected a whole number from 1 to 4096, got 0"),
    ("watch builtin --candidates 4 --argmax", "candidates: expected 1 with --argmax, which samples none, got 4"),
    ("watch mine.toml --output x.avi", "output: expected a name ending in .mp4 or .webm or .gif, got 'x.avi'"),
    ("watch a.replay --output mine.toml/x.gif", "output: expected a folder, got mine.toml, which is a file; "),
    ("replay video x.replay", "command: expected one of verify, convert, record, got 'video'"),
    ("replay verify", "files: expected at least one recording or a folder of them, got none"),
    ("replay record jumps/01-stairs --inputs 3X", "inputs: word 1: expected a count"),
    ("replay record jumps/01-stairs", "inputs, human: expected exactly one of --inputs '24RJ 3.' and --human"),
    ("replay record jumps/01-stairs --human --inputs 3R", "inputs, human: expected exactly one of"),
    ("solve", "levels: expected at least one level, got none; name a set, a level or a file"),
    (
        "solve jumps --objective tim",
        "expected one of time, score, all-gold, got 'tim'; did you mean 'time'?",
    ),
    ("solve jumps --ladder 1s,10", "ladder: expected growing budgets such as 1s,10s,60s or 1e5,1e6"),
    ("solve jumps --ladder 1s --frames 1", "ladder: expected neither --seconds nor --frames with it"),
    ("solve jumps --shard 1/2 --force", "force: expected it without --shard"),
    ("solve nosuch.MAP", "level: expected a level file, got 'nosuch.MAP', which does not exist"),
    ("levels show", "level: expected a value, got none; nclone-env levels show --help explains the arguments"),
    ("levels show mine.toml", "mine.toml: "),
    ("levels show jumps", "level: expected one level, got 5 in 'jumps'"),
    ("levels validate jumps --shard 1/2", "output: expected a folder for the journal of the shard, got none; name one"),
    ("levels show jumps/01-stairs --output a.jpg", "output: expected a name ending in .png, got 'a.jpg'"),
    ("levels show jumps/01-stairs --output=", "--output: expected a path on this machine, got ''; nclone-env levels"),
    ("watch a.replay https://a.b/c", "sources: expected a path on this machine, got 'https://a.b/c'; nclone-env watch"),
    ("benchmark run Builtin-v1 --seed 1 abc", "--seed: expected a whole number, such as 1000000, 1e6 or 1M, got 'abc'"),
    ("levels generate --output s3://b/a.txt", "--output: expected a path on this machine, got 's3://b/a.txt'"),
    ("levels show jumps \u2013output a.png", "arguments: expected two hyphens before an option, got '\u2013output'"),
    ("levels generate", "--output: expected a value, got none; nclone-env levels generate --help"),
    ("levels generate --output a.txt --family cave", "got 'cave'; did you mean 'caves'?"),
    ("levels generate --output a.txt --count 0", "count: expected a whole number of at least 1, got 0"),
    ("levels generate --output a.txt --difficulty 60..20", "within 0..100, the smaller number first, got 60..20"),
    ("levels convert jumps/01-stairs a.png", "target: expected a name ending in .toml or .map, got 'a.png'"),
    ("gallery", "levels: expected at least one level or recording, got none"),
    ("gallery jumps --recordings x.replay", "recordings: expected files or folders, got 'x.replay', which does"),
    ("gallery jumps --output /proc/site", "output: /proc/site cannot be written"),
    ("warmup trains", "got 'trains'; did you mean 'train'?"),
    ("--tyro-print-completion", "--tyro-print-completion: expected one of bash, zsh, fish, got none"),
    ("--tyro-write-completion bashh x", "--tyro-write-completion: expected one of bash, zsh, fish, got 'bashh'"),
]


@pytest.mark.parametrize(("words", "answer"), MISTAKES, ids=[f"{words}-{n}" for n, (words, _) in enumerate(MISTAKES)])
def test_a_mistake_is_answered_in_one_line_and_leaves_no_file(words, answer, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text("not a level")
    (tmp_path / "a.replay").write_bytes(RECORDING)
    try:
        status = main(words.split())
    except SystemExit as error:  # no answer should come from the parser
        status = f"the parser said {capsys.readouterr().err} and exits with {error.code}"
    assert status == 2
    said = capsys.readouterr()
    assert said.err.startswith("nclone-env: ")
    assert said.err.count("\n") == 1
    assert answer in said.err
    assert said.out == ""
    assert {path.name for path in tmp_path.iterdir()} == {"mine.toml", "a.replay"}


def test_help_is_no_mistake(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["replay", "record", "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr()
    assert "--inputs" in said.out
    assert "replay record [-h] [RECORD OPTIONS] LEVEL\n" in said.out
    assert said.err == ""
