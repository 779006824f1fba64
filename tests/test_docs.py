"""Commands that the documentation shows are commands that are understood."""

import collections
import itertools
import re
import shlex
from pathlib import Path

import pytest

from benchmarks import explanations
from benchmarks.quality import pretraining as quality
from bert_tf.cli.command_line import parse_flags
from tests import architecture_page, declared, page_blocks

DOCS = Path(__file__).resolve().parents[1] / "docs"
FAMILIES = ("squad", "tagging", "choice", "vectors")
BOTH = ("devices", "pretraining", "vocabulary", *FAMILIES)  # run_classifier.py and other commands
OTHERS = ("batch_jobs", "explain", "fill_mask", "gpu_checks")
PAGES = {name: (DOCS / f"{name}.md").read_text(encoding="utf-8") for name in (*BOTH, *OTHERS)}
PARSERS = {
    "run_classifier.py": declared.parser("fine-tune"),
    "-m benchmarks.quality.pretraining": lambda argv: parse_flags(argv, quality.FLAGS),
    "-m benchmarks.explanations": lambda argv: explanations.parsed(argv[1:]),
    **{f"-m bert_tf {name}": declared.parser(name) for name in declared.NAMES},
}
PARTS = ("Data", "Files", "Measures", "Options", "As a library")  # of the page of a family
ROWS = [*itertools.chain.from_iterable(declared.flags().values()), *quality.FLAGS]
FLAGS = {"help", *(row.name for row in ROWS), *(f"no{row.name}" for row in ROWS if row.kind is bool)}


def commands(page):
    """Returns the commands of a page; a line that ends with a backslash goes on in the next one."""
    lines = PAGES[page].replace("\\\n", "")
    return re.findall(r"^    (?:cat .* \| |timeout .* |\w+=\S+ )?python (.+)$", lines, re.MULTILINE)


@pytest.mark.parametrize("page", BOTH)
def test_a_page_has_commands_of_both_kinds(page):
    assert {line.startswith("run_classifier.py") for line in commands(page)} == {True, False}


@pytest.mark.parametrize("line", [line for page in PAGES for line in commands(page)])
def test_a_command_of_a_page_is_understood(line):
    (kind,) = (kind for kind in PARSERS if f"{line} ".startswith(f"{kind} "))
    words = shlex.split(line.removeprefix(kind), comments=True)
    PARSERS[kind](["program", *itertools.takewhile(lambda word: word not in (">", "|"), words)])  # without what a shell takes


@pytest.mark.parametrize("page", PAGES)
def test_every_flag_that_a_page_mentions_exists(page):
    mentioned = set(re.findall(r"(?<![\w-])--(\w+)", PAGES[page]))
    others = {"gpus", "runner", "direct_num_workers", "direct_running_mode", "peer", "signal"}  # of other programs
    assert mentioned <= FLAGS | others


@pytest.mark.parametrize("page", FAMILIES)
def test_pages_of_families_have_the_same_parts(page):
    titles = re.findall(r"^##+ (.+)$", PAGES[page], re.MULTILINE)
    assert [title for title in titles if title in PARTS] == list(PARTS)


def test_every_code_of_a_missing_gpu_is_on_the_devices_page():
    source = (Path(__file__).resolve().parents[1] / "bert_tf" / "runtime" / "diagnosis.py").read_text(encoding="utf-8")
    codes = set(re.findall(r'Cause\(\s*"(\w+)"', source))
    assert codes == set(re.findall(r"`(\w+)`", PAGES["devices"].partition("| code |")[2].partition("\n\n")[0])) - {"libcuda"}


def trainings():
    """Yields page, folder and flags of each command line that trains."""
    for page, path in page_blocks.PAGES.items():
        texts = [re.sub(r" *\\\n *", " ", block.text) for block in page_blocks.blocks(path) if block.left_out != "output"]
        for line in re.findall(r"run_classifier\.py (.+)(?<!\.\.\.)$", "\n".join(texts), re.MULTILINE):
            flags = dict(re.findall(r"--(\w+)=?(\S*)", line))
            yield page, flags.pop("output_dir", "out/mrpc"), flags.keys()


def test_a_training_of_a_page_is_not_in_the_folder_of_another():
    """It would be refused, or find nothing left to train: many pages begin with a run in the default folder."""
    pages = collections.defaultdict(set)
    for page, folder, flags in trainings():
        if folder == "out/mrpc":
            assert flags <= {"task_name", "do_eval", "calibrate"}, page
        else:
            pages[folder].add(page)
    assert pages.pop("out/tickets") == {"README.md", "docs/your_data.md"}  # the same run
    assert [folder for folder, names in pages.items() if len(names) > 1] == []


def test_the_picture_of_the_architecture_is_the_code_s():
    _, shown, _ = architecture_page.parts()
    assert shown.rstrip("\n") == architecture_page.picture()


def test_every_page_is_in_the_index():
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} - {"README.md"}
    linked = re.findall(r"\]\(([\w/]+\.md)\)", (DOCS / "README.md").read_text(encoding="utf-8"))
    assert sorted(linked) == sorted(pages)


@pytest.mark.parametrize("page", page_blocks.PAGES)
def test_links_and_pictures_of_a_page_exist(page):
    path = page_blocks.PAGES[page]
    text = path.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)]+))?\)", text):
        file = path.parent / target if target else path
        assert file.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}, anchor


@pytest.mark.parametrize("page", page_blocks.PAGES)
def test_pages_that_a_page_names_exist(page):
    text = page_blocks.PAGES[page].read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w/.-])(?:docs|benchmarks|bert_tf)/[\w/]+\.(?:md|ipynb|py|png)\b", text))
    assert {name for name in named if not (DOCS.parent / name).exists()} == set()


@pytest.mark.parametrize("page", [*page_blocks.PAGES, "docs/quickstart.ipynb"])
def test_no_page_installs_the_package_from_an_index(page):
    """It is on none: whoever registers the name there would be installed instead."""
    text = (DOCS.parent / page).read_text(encoding="utf-8")
    assert re.findall(r"pip install [^`\n]*(?<![\w./])bert[-_]tf\b", text) == []
