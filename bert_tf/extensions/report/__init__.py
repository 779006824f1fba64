"""Report: the HTML page of a run, or of several side by side (docs/profiling.md)."""

from bert_tf.extension import Extension, NewCommand, RunPage

EXTENSION = Extension(
    page=RunPage(f"{__name__}.page:write_of_run", f"{__name__}.page:prepare"),
    times={"page": ("page", "unaccounted")},
    commands={
        "report": NewCommand(
            f"{__name__}.command:COMMAND", "Look at runs", "writes the HTML report of a run, or of several side by side"
        )
    },
)
