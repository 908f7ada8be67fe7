from nclone_env._table import table


def test_numbers_are_aligned_on_the_right_and_words_on_the_left():
    assert table(
        ("name", "n", "change", "verdict"), [("a", "100", "-2 B", "flat"), ("long name", "2", "-", "up"), ("b",)]
    ) == ["name         n  change  verdict", "a          100    -2 B  flat", "long name    2       -  up", "b"]


def test_a_table_without_rows_is_its_titles():
    assert table(("name", "n"), []) == ["name  n"]
