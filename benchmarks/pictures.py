"""The pictures of the documentation, from real runs: python -m benchmarks.pictures [FOLDER] [--only=report,audit]

FOLDER (default out/pictures) keeps the runs, so a second call only takes the pictures again. Needs the default checkpoint, the
extra `serve`, Pillow, and Chromium on the PATH (apt-get install chromium). The bar chart is that of `benchmarks.speed_chart`.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import html
import json
import os
import random
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from benchmarks import browser
from bert_tf.config import BertConfig

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
WIDTHS = (1400, 400)
COLOURS = 256  # of a picture's palette
TICKETS_TO_CALIBRATE = 1200  # a reliability diagram needs more than the 120 of dev
PORT = 8573
SERVICE = f"http://127.0.0.1:{PORT}/"
TICKETS = (
    *("--task_name=custom", "--train_file=tickets/train.csv", "--dev_file=tickets/dev.csv"),
    *("--text_a=subject,message", "--label_column=queue", "--id_column=ticket"),
)
PLAN = ("memory", "plan", "--max_seq_length=128", "--train_batch_size=32", "--gpu_memory_mb=5175")
SWEEP = """tasks: [custom]
seeds: 1-2
settings:
  train_file: tickets/train.csv
  dev_file: tickets/dev.csv
  text_a: subject,message
  label_column: queue
  num_train_epochs: 2
  learning_rate: [1e-5, 5e-5, 2e-4]
  train_batch_size: [8, 32]
"""
TICKET = "I was billed twice for my subscription in May, and the app crashes when I open the invoice."
EXPLAIN = f"""(async () => {{
  const field = document.querySelector('form textarea');
  field.value = {json.dumps(TICKET)};
  field.dispatchEvent(new Event('input', {{bubbles: true}}));
  const answer = document.querySelector('#answer'), before = answer.innerHTML;
  [...document.querySelectorAll('form button')].find(one => /explain/i.test(one.textContent)).click();
  const isBusy = () => answer.innerHTML === before || [...document.querySelectorAll('form button')].some(one => one.disabled);
  for (let wait = 0; wait < 600 && isBusy(); wait++) await new Promise(go => setTimeout(go, 50));
  await new Promise(go => setTimeout(go, 300));
}})()"""


@dataclasses.dataclass(frozen=True)
class Shot:
    """A picture of a page."""

    page: str  # path in the folder of runs, or address
    selector: str = "body"  # the element at the top
    height: int = 1000  # most pixels
    script: str = "0"  # run before
    widths: tuple[int, ...] = WIDTHS


SHOTS = {
    "report": Shot("out/tickets/report.html"),
    "audit": Shot("out/audit/audit.html", height=800),
    "explanation": Shot("out/corrected/report.html", selector="li:has(mark[style])", height=600),
    "reliability": Shot("out/calibrated/report.html", selector="#calibration", height=700),
    "sweep": Shot("out/sweep/report.html"),
    "service": Shot(SERVICE, script=EXPLAIN, height=900),
    "memory_plan": Shot("memory_plan.html", selector="pre", widths=(900,)),
}
TIMELINE = "timeline"  # drawn by `memory peak --pictures`


def run(folder: Path, *arguments: str) -> str:
    """Runs a command of the package in the folder, and returns its output."""
    print("bert_tf", *arguments, flush=True)  # noqa: T201
    command = [sys.executable, "-m", "bert_tf", *arguments]
    if arguments[0].startswith("--"):
        command = [sys.executable, str(ROOT / "run_classifier.py"), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def make_runs(folder: Path) -> None:
    """Runs the commands of docs/your_data.md, and others; only pages are made again if a run is there."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "out/corrected/decision.json").exists():
        subprocess.run([sys.executable, str(ROOT / "docs" / "tickets.py")], cwd=folder, check=True)
        run(folder, *TICKETS, "--output_dir=out/tickets")
        run(folder, "data", "audit", *TICKETS, "--output_dir=out/audit")
        run(
            folder,
            *TICKETS,
            *(f"--{name}=out/audit/audit.csv" for name in ("relabel", "exclude_rows")),
            "--output_dir=out/corrected",
        )
        run(folder, "calibrate", "out/corrected", "--abstain=coverage:0.9")
    run(folder, "data", "audit", *TICKETS, "--output_dir=out/audit", "--overwrite")
    run(folder, "report", "out/tickets")
    run(folder, "report", "out/corrected", "--explain=5")
    if not (folder / "out/calibrated").exists():
        shutil.copytree(folder / "out/corrected", folder / "out/calibrated")
        module = runpy.run_path(str(ROOT / "docs" / "tickets.py"))
        more = module["numbered"]("more", TICKETS_TO_CALIBRATE, random.Random(1))  # noqa: S311
        (folder / "more.csv").write_text(module["csv_text"](more), encoding="utf-8")
        run(folder, "calibrate", "out/calibrated", "--data=more.csv")
    run(folder, "report", "out/calibrated")
    if not (folder / "out/sweep/sweep.tsv").exists():
        (folder / "sweep.yaml").write_text(SWEEP)
        run(folder, "sweep", "sweep.yaml", "--output_dir=out/sweep")
    run(folder, "report", "out/sweep")
    if not (folder / "out/trace").exists():
        run(folder, *TICKETS, "--do_train", "--num_train_steps=8", "--memory_trace_step=5", "--output_dir=out/trace")
    run(folder, "memory", "peak", "out/trace/live_memory_step5.tsv", "--pictures=drawn")
    (folder / "bert_base.json").write_text(BertConfig(vocab_size=30522).to_json())
    plan = f"$ python -m bert_tf {' '.join(PLAN)} \\\n    --bert_config_file=$BERT_BASE_DIR/bert_config.json\n"
    plan += run(folder, *PLAN, "--bert_config_file=bert_base.json")
    (folder / "memory_plan.html").write_text(_terminal(plan))


def _terminal(text: str) -> str:
    return (
        '<meta charset="utf-8"><style>body{margin:0;background:#1e1e1e;width:max-content}'
        f"pre{{color:#e6e6e6;font:14px/1.35 monospace;margin:0;padding:16px}}</style><pre>{html.escape(text)}</pre>"
    )


@contextlib.contextmanager
def service(folder: Path) -> Iterator[None]:
    """Serves the model."""
    command = [sys.executable, "-m", "bert_tf", "serve", "out/corrected", f"--port={PORT}"]
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        for _ in range(120):
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                urllib.request.urlopen(f"{SERVICE}health/ready", timeout=5)  # noqa: S310
                break
            time.sleep(0.5)
        yield
    finally:
        process.terminate()
        process.wait(60)


def take(shot: Shot, name: str, folder: Path, window: browser.Browser) -> None:
    """Writes NAME.png, and NAME_400.png for a narrow window."""
    page = shot.page if shot.page.startswith("http") else folder / shot.page
    for width in shot.widths:
        window.open(page, width=width)
        window.evaluate(shot.script)
        path = PICTURES / (f"{name}.png" if width == shot.widths[0] else f"{name}_{width}.png")
        path.write_bytes(window.picture(shot.selector, shot.height))
        shrink(path, path)


def shrink(source: Path, path: Path) -> None:
    """Writes a PNG with a palette."""
    from PIL import Image

    with Image.open(source) as picture:
        small = picture.convert("RGB").quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1000} kB", flush=True)  # noqa: T201


def main() -> None:
    """Makes the runs, and takes the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "out" / "pictures")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[*SHOTS, TIMELINE], help="names with commas")
    options = parser.parse_args()
    folder = options.folder.resolve()
    make_runs(folder)
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile, browser.started(Path(profile)) as window:
        serve = service(folder) if "service" in options.only else contextlib.nullcontext()
        with serve:
            for name in (name for name in SHOTS if name in options.only):
                take(SHOTS[name], name, folder, window)
    if TIMELINE in options.only:
        shrink(folder / "drawn" / "live_memory.png", PICTURES / f"{TIMELINE}.png")


if __name__ == "__main__":
    main()
