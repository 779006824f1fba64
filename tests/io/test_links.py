"""Links in a folder that others may have made: what the package names itself is not written through them."""

import json
import os

import pytest

from bert_tf.errors import OutputError
from bert_tf.io import atomic, lock


@pytest.fixture
def mine(tmp_path):
    """A file of the user."""
    path = tmp_path / "mine" / "notes.txt"
    path.parent.mkdir()
    path.write_text("mine")
    return path


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


def test_a_link_out_of_the_folder_is_replaced(mine, run):
    (run / "report.html").symlink_to(mine)
    (run / "loop").symlink_to("loop")
    (run / "device").symlink_to(os.devnull)
    for name in ("report.html", "loop", "device"):
        atomic.write_text(run / name, "page")
        assert not (run / name).is_symlink()
        assert (run / name).read_text() == "page"
    assert mine.read_text() == "mine"
    assert sorted(path.name for path in run.iterdir()) == ["device", "loop", "report.html"]


def test_a_link_within_the_folder_and_one_that_the_user_names_are_followed(mine, run):
    (run / "last.html").symlink_to("pages/1.html")
    atomic.write_text(run / "last.html", "page")
    assert (run / "pages" / "1.html").read_text() == "page"
    (run / "named.html").symlink_to(mine)
    atomic.write_text(run / "named.html", "page", follows=True)
    assert (run / "named.html").is_symlink()
    assert mine.read_text() == "page"


def test_a_linked_folder_is_followed_as_a_whole(run, tmp_path):
    (tmp_path / "out").symlink_to("run")
    atomic.write_text(tmp_path / "out" / "report.html", "page")
    with lock.writing_folder(tmp_path / "out"):
        assert (run / ".writer.json").is_file()
    assert (run / "report.html").read_text() == "page"


def test_a_whole_folder_in_place_of_a_link(mine, run):
    (run / "model").symlink_to(mine.parent)
    with atomic.replacing(run / "model", follows=False) as temporary:
        temporary.mkdir()
    assert not (run / "model").is_symlink()
    assert list((run / "model").iterdir()) == []
    assert mine.read_text() == "mine"


def test_an_inner_folder_that_leads_out_is_refused(mine, run):
    (run / "tracking").symlink_to(mine.parent)
    with pytest.raises(OutputError, match=r"run/tracking: is a link to .*/mine, where nothing is written; delete the link"):
        atomic.make_folder(run / "tracking", follows=False)
    assert atomic.make_folder(run / "tracking") == run / "tracking"


@pytest.mark.parametrize("target", ["../mine/notes.txt", "../mine/absent.txt"])
def test_a_lock_is_not_taken_through_links(mine, run, target):
    for name in (".writer.json", ".writer.lock"):
        (run / name).symlink_to(target)
    with lock.writing_folder(run):
        assert json.loads((run / ".writer.json").read_text())["pid"] == os.getpid()
        assert lock.holder_of(run) == os.getpid()
    assert list(run.iterdir()) == []
    assert [path.name for path in mine.parent.iterdir()] == ["notes.txt"]
    assert mine.read_text() == "mine"
