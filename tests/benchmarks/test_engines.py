from benchmarks import engines


def test_a_row_has_rates_accuracy_and_percentiles():
    turns = [
        (([2.0], ["1", "0", "1", "1"]), ([0.01, 0.03], ["1", "0"])),
        (([1.0], ["1", "0", "1", "1"]), ([0.02, 0.02], ["1", "0"])),
    ]
    row = engines._row("one", turns, ["1", "1", "1", "1"])
    assert row == ("one", "3.0", "2.0", "4.0", "0.7500", "20.0", "29.7")


def test_measures_one_thread_by_the_clock_on_the_wall_unless_told():
    asked = engines._asked(["run", "data"])
    assert (asked.threads, asked.clock, asked.peer) == (1, "wall", None)
