"""Sweep: tasks x seeds x settings, or a search, on every device, with one table (docs/sweeps.md)."""

from bert_tf.extension import Extension, NewCommand, Series

# In a folder of runs: their table, the settings that they share, and the folder of their results.
TABLE, SETTINGS, RESULTS = "sweep.tsv", "sweep.json", "results"

EXTENSION = Extension(
    panel=f"{__name__}.panel:of_runs",
    commands={
        "sweep": NewCommand(
            f"{__name__}.command:COMMAND",
            "Train, evaluate, predict",
            "trains tasks x seeds x settings on every device, with one table",
        )
    },
    series=(Series("sweep", table=TABLE),),
)
