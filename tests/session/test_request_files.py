"""Requests to a session: files that several requesters write, and marks that are left after the training."""

from __future__ import annotations

import os
import platform
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sessions import INFO, Written

from rlprof.errors import RlprofError
from rlprof.session.process import identity_of
from rlprof.session.reader import Session
from rlprof.session.requests import (
    CaptureRequest,
    MarkRequest,
    StacksRequest,
    answers_of,
    pending,
    read_request,
    request_mark,
    withdraw,
    write_marks,
    write_request,
)

CAPTURE = CaptureRequest("iteration", 1, 2)


def ended(folder):
    written = Written(folder)
    written.work("env_step", 1_000)
    written.end()
    return folder


def unended(folder, **info):
    written = Written(folder)
    written.work("env_step", 1_000)
    written.flush()
    written.writer.describe(replace(INFO, **info))
    written.writer.close()
    return folder


def marks_of(folder):
    with Session(folder) as session:
        return [(mark.time, mark.kind, mark.text) for mark in session.marks()]


def test_requests_of_several_views_are_read_in_the_order_in_which_they_were_written(tmp_path):
    requests = [CAPTURE, MarkRequest("alert", "memory", 5), StacksRequest(), CAPTURE]
    paths = [write_request(tmp_path, request) for request in requests]
    assert pending(tmp_path) == paths
    assert [read_request(path) for path in paths] == requests


def test_only_the_owner_can_read_requests(tmp_path):
    path = write_request(tmp_path, StacksRequest())
    for folder in (path.parent, answers_of(path)):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_folder_of_requests_is_gone_with_the_last_one(tmp_path):
    first, second = write_request(tmp_path, CAPTURE), write_request(tmp_path, StacksRequest())
    (answers_of(second) / "1.json").write_text("{}")
    withdraw(first)
    withdraw(first)
    assert pending(tmp_path) == [second]
    withdraw(second)
    assert list(tmp_path.iterdir()) == []


def test_a_request_is_written_while_another_view_removes_the_folder(tmp_path):
    def request_and_withdraw(number):
        for place in range(50):
            path = write_request(tmp_path, MarkRequest("alert", f"{number} {place}", 0))
            assert read_request(path) == MarkRequest("alert", f"{number} {place}", 0)
            withdraw(path)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(request_and_withdraw, range(4)))
    assert list(tmp_path.iterdir()) == []


def test_a_request_to_a_deleted_session_fails(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_request(tmp_path / "gone", CAPTURE)


@pytest.mark.parametrize("request_", [CAPTURE, StacksRequest()], ids=["capture", "stacks"])
def test_requests_are_never_written_or_removed_behind_a_link(request_, tmp_path):
    outside, folder = tmp_path / "outside", tmp_path / "run"
    outside.mkdir()
    folder.mkdir()
    (outside / "1.json").write_text("{}")
    (folder / "requests").symlink_to(outside)
    with pytest.raises(NotADirectoryError, match="requests in it is not a folder"):
        write_request(folder, request_)
    assert pending(folder) == []
    withdraw(folder / "requests" / "1.json")
    assert [file.name for file in outside.iterdir()] == ["1.json"]


def test_answers_are_never_removed_behind_a_link(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.txt").touch()
    path = write_request(tmp_path, StacksRequest())
    answers_of(path).rmdir()
    answers_of(path).symlink_to(outside)
    withdraw(path)
    assert (outside / "kept.txt").exists()


DAMAGED = (
    b"",
    b"{",
    b"[]",
    b"\xff",
    b'{"request": "shutdown"}',
    b'{"request": "mark", "kind": 1}',
    b'{"request": "stacks", "x": 1}',
)


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_or_unknown_request_is_a_value_error(content, tmp_path):
    path = write_request(tmp_path, CAPTURE)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"JSON|[Ii]nput|Object|Invalid|[Ee]xpected|missing"):
        read_request(path)


def test_a_request_that_is_no_plain_file_is_not_waited_for(tmp_path):
    path = write_request(tmp_path, CAPTURE)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ValueError, match="not a plain file"):
        read_request(path)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(OSError, match="symbolic links"):
        read_request(path)


def test_a_huge_request_is_not_read(tmp_path):
    path = write_request(tmp_path, CAPTURE)
    path.write_bytes(b" " * (2 << 20))
    with pytest.raises(ValueError, match="more than"):
        read_request(path)


def test_marks_that_a_training_has_left_are_written_once_it_has_ended(tmp_path):
    folder = ended(tmp_path / "run")
    write_request(folder, MarkRequest("alert", "killed", INFO.started + 7))
    write_request(folder, MarkRequest("alert", "late", INFO.started + 9))
    assert write_marks(folder) == 2
    assert write_marks(folder) == 0
    assert marks_of(folder) == [(7, "alert", "killed"), (9, "alert", "late")]
    assert [path.name for path in folder.iterdir()] == ["session.db"]


def test_a_mark_of_a_watcher_that_was_killed_before_it_removed_the_request_is_there_once(tmp_path):
    folder = ended(tmp_path / "run")
    for _ in range(2):
        write_request(folder, MarkRequest("alert", "killed", INFO.started + 7))
        write_marks(folder)
    assert marks_of(folder) == [(7, "alert", "killed")]


def test_marks_of_a_killed_training_are_written(tmp_path):
    folder = unended(tmp_path / "run", host=platform.node(), pid=2**22 + 1, process="gone")
    request_mark(folder, "alert", "half a surrogate: \ud800")
    assert write_marks(folder) == 1
    assert marks_of(folder)[0][1:] == ("alert", "half a surrogate: ?")


@pytest.mark.parametrize("host", ["", "elsewhere"])
def test_marks_are_left_to_a_training_that_may_still_run(host, tmp_path):
    mine = identity_of(os.getpid())
    folder = unended(tmp_path / "run", host=host or platform.node(), pid=os.getpid(), process=mine)
    request_mark(folder, "alert", "memory")
    assert write_marks(folder) == 0
    assert len(pending(folder)) == 1
    assert marks_of(folder) == []


def test_other_requests_are_no_marks(tmp_path):
    folder = ended(tmp_path / "run")
    write_request(folder, CAPTURE)
    damaged = write_request(folder, CAPTURE)
    damaged.write_bytes(b"{")
    assert write_marks(folder) == 0
    assert len(pending(folder)) == 2


def test_a_session_that_cannot_be_written_is_an_error_of_one_sentence(tmp_path):
    folder = ended(tmp_path / "run")
    request_mark(folder, "alert", "memory")
    (folder / "session.db").write_bytes(b"no database" * 1000)
    with pytest.raises(RlprofError, match=r"cannot be written, so 1 mark is missing in it"):
        write_marks(folder)
    assert len(pending(folder)) == 1
