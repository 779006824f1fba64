"""The extension on docs/extensions.md, installed: a flag, a loss, a hook, a panel and a command."""

import re
from pathlib import Path

import pytest

from tests import processes, tiny
from tests.extensions import copies

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extensions.md"


def install(folder: Path, name: str, code: str) -> Path:
    """A package of one module, as pip leaves it."""
    information = folder / "confident-1.dist-info"
    information.mkdir(parents=True)
    (folder / "confident.py").write_text(code, encoding="utf-8")
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: confident\nVersion: 1\n", encoding="utf-8")
    (information / "entry_points.txt").write_text(f"[bert_tf.extensions]\n{name} = confident\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outside")
    [code] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert code.count("\n") < 80
    installed = install(folder / "site-packages", "confident", code)
    project = tiny.write_project(folder / "project")
    flags = project.flags(folder / "out", do_train=True, do_eval=True, num_train_steps=4, confidence_penalty=0.5)
    return installed, folder / "out", copies.run(installed, "fine-tune", *flags)


def test_a_run_with_it_has_its_loss_in_the_record_its_file_and_its_panel(trained):
    _, out, done = trained
    assert done.returncode == 0, done.stderr
    assert '"confidence_penalty": 0.5' in (out / "run_config.json").read_text()
    assert "--confidence_penalty=0.5" in (out / "run_config.json").read_text()
    norms = (out / "class_norms.tsv").read_text()
    assert [line.split("\t")[0] for line in norms.splitlines()] == ["0", "1"]
    assert f"<pre>{norms}</pre>" in (out / "report.html").read_text()


def test_its_command_and_its_flag_are_among_the_others(trained):
    installed, out, _ = trained
    assert copies.run(installed, "norms", out).stdout == (out / "class_norms.tsv").read_text()
    assert "norms" in copies.run(installed, "--help").stdout
    assert "--confidence_penalty" in copies.run(installed, "fine-tune", "--help=all").stdout


def test_a_run_with_it_is_refused_without_it(trained):
    _, out, _ = trained
    flags = tiny.write_project(out.parent / "again").flags(out, do_train=True, num_train_steps=4)
    done = processes.run(["-m", "bert_tf", "fine-tune", *flags])
    assert done.returncode == 2
    assert "confidence_penalty was 0.5, now None" in done.stderr


DOUBLE = """
import dataclasses
from bert_tf.extension import Extension, Settings
from bert_tf.settings import setting

@dataclasses.dataclass(frozen=True)
class Own(Settings):
    seed: int = setting(1, "a number")

EXTENSION = Extension(settings=Own)
"""

COMMANDS = """
from bert_tf.extension import Extension, NewCommand
EXTENSION = Extension(commands={{"{}": NewCommand("x:y", "Own", "does something")}})
"""


FIELDS = """
from bert_tf.extension import Extension, NewTask
EXTENSION = Extension({})
"""


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("confident", "import no_such_module", "extension confident (confident): ModuleNotFoundError: No module"),
        ("confident", "", "extension confident (confident): AttributeError: module 'confident' has no attribute 'EXTENSION'"),
        ("confident", "EXTENSION = 1", "extension confident (confident): TypeError: EXTENSION is 1, no bert_tf.extension"),
        ("track", "EXTENSION = None", "extension track (confident): name it otherwise"),
        ("my-own", "EXTENSION = None", "extension my-own (confident): name it otherwise"),
        ("confident", COMMANDS.format("track"), "extension confident (confident): ValueError: there is a command track"),
        ("confident", COMMANDS.format("predict"), "an extension names its command predict, which there is already"),
        ("confident", DOUBLE, "extension confident: there is a setting seed already"),
        ("confident", DOUBLE.replace("settings=", "of_tasks="), "extension confident: there is a setting seed already"),
        ("confident", DOUBLE.replace("seed: int", "mine: list[str]"), "confident.Own.mine: list[str] is no type of a setting"),
        (
            "confident",
            DOUBLE.replace("seed: int", "mine: 'Optional[float]'"),
            "confident.Own.mine: Optional[float] is no type of a setting (bool, int, float, str, tuple[str, ...], X | None",
        ),
        ("confident", FIELDS.format('tasks={"mrpc": NewTask("x:y")}'), "x:y: there is a task mrpc already"),
        ("confident", FIELDS.format('tasks={"swag": NewTask("x:y")}'), "x:y: there is a task swag already"),
        (
            "confident",
            FIELDS.format('pipelines={"predict": "x:y"}'),
            "extension confident (confident): ValueError: there is a pipeline predict already",
        ),
        (
            "confident",
            FIELDS.format("decides=True"),
            "extension confident (confident): ValueError: a decision rule is fitted by a part, and there is none",
        ),
    ],
)
def test_a_broken_one_is_one_line(name, code, message, tmp_path):
    done = copies.run(install(tmp_path, name, code), "fine-tune", "--help")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert done.stderr.startswith(f"error: {message}")


@pytest.mark.parametrize(
    "module",
    [
        "batch.job",
        "extensions.report.panels",
        "modeling.heads.base",
        "operations.command",
        "settings",
        "tasks.base",
        "tasks.file_task",
        "tasks.registry",
        "tasks.settings",
        "training.part",
        "training.settings",
    ],
)
def test_its_module_may_import(module, tmp_path):
    code = f"import bert_tf.{module}\n{DOUBLE.replace('seed', 'only_mine')}"
    done = copies.run(install(tmp_path, "confident", code), "fine-tune", "--help=all")
    assert (done.returncode, done.stderr) == (0, "")
    assert "--only_mine" in done.stdout


def test_a_module_that_lists_the_extensions_is_refused_in_it(tmp_path):
    code = f"import bert_tf.training.run_spec\n{DOUBLE.replace('seed', 'only_mine')}"
    done = copies.run(install(tmp_path, "confident", code), "fine-tune", "--help=all")
    message = "ImportError: it imports a module of bert_tf that lists the extensions; import that in its functions instead"
    assert (done.returncode, message in done.stderr, len(done.stderr.splitlines())) == (2, True, 1)


@pytest.mark.parametrize(
    ("command", "flag", "field"),
    [("serve", "port", "serving"), ("evaluate", "data", "evaluating"), ("predict", "output", "of_tasks")],
)
def test_a_flag_of_a_command_that_is_there_already_is_one_line(command, flag, field, tmp_path):
    code = DOUBLE.replace("seed: int", f"{flag}: int").replace("settings=Own", f"{field}=Own")
    done = copies.run(install(tmp_path, "confident", code.replace('number"', "number\", column_of='rows'")), command, "--help")
    message = f"error: extension confident: there is a setting {flag} already; correct or uninstall its package\n"
    assert (done.returncode, done.stderr) == (2, message)


def test_an_action_of_a_command_without_actions_is_one_line(tmp_path):
    done = copies.run(install(tmp_path, "confident", COMMANDS.format("predict x")), "predict", "--help")
    assert (done.returncode, done.stderr.partition(";")[0]) == (
        2,
        "error: an extension adds predict x, but predict has no actions",
    )


def test_an_action_of_no_command_is_one_line_where_it_is_asked_for(tmp_path):
    installed = install(tmp_path, "confident", COMMANDS.format("nothing x"))
    done = copies.run(installed, "nothing", "x")
    message = "error: the command nothing is missing, to which an extension adds nothing x (docs/extensions.md)\n"
    assert (done.returncode, done.stderr) == (2, message)
    assert copies.run(installed, "evaluate", "--help").returncode == 0


def test_a_command_may_have_a_group_of_its_own(tmp_path):
    told = copies.run(install(tmp_path, "confident", COMMANDS.format("own")), "--help").stdout
    assert "Own:\n  own " in told


def test_two_changes_of_the_loss_are_refused(trained):
    installed, out, _ = trained
    flags = tiny.write_project(out.parent / "two").flags(out.parent / "two", do_train=True, num_train_steps=2)
    done = copies.run(installed, "fine-tune", *flags, "--confidence_penalty=0.5", "--contrastive_weight=0.5")
    assert done.returncode == 2
    assert "error: few_labels and confident change the loss: leave the settings of all but one out" in done.stderr


TWICE = """
import dataclasses
from bert_tf.extension import Driven, Driver, Extension, Settings
from bert_tf.settings import setting

@dataclasses.dataclass(frozen=True)
class Own(Settings):
    twice: bool = setting(False, "trains twice", resolved=True)

def drive(config, *, environment, task):
    return Driven("both", [f"trained {config.data.task_name} twice"], 2, "out")

EXTENSION = Extension(settings=Own, drivers={"twice": Driver("confident:drive", "pass")})
"""


def test_a_driver_takes_the_place_of_the_run(tmp_path):
    installed, flags = install(tmp_path, "confident", TWICE), ["--task_name=MRPC", "--twice"]
    done = copies.run(installed, "fine-tune", *flags)
    assert (done.returncode, done.stdout) == (0, "trained MRPC twice\n"), done.stderr
    done = copies.run(installed, "fine-tune", *flags, "--seeds=1-2")
    assert (done.returncode, done.stderr) == (2, "error: --seeds and --twice exclude each other: each trains several runs\n")


@pytest.mark.parametrize(
    ("code", "line", "message"),
    [
        (COMMANDS.format("own"), ["own"], "x:y: ModuleNotFoundError: No module named 'x'"),
        (
            TWICE.replace("confident:drive", "confident:drove"),
            ["fine-tune", "--task_name=MRPC", "--twice"],
            "confident:drove: AttributeError: module 'confident' has no attribute 'drove'",
        ),
    ],
)
def test_a_name_that_its_package_lacks_is_one_line(code, line, message, tmp_path):
    done = copies.run(install(tmp_path, "confident", code), *line)
    assert (done.returncode, done.stderr) == (2, f"error: {message}; correct or uninstall its package\n")
