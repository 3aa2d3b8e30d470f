"""The pages and the streams, without a browser."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from serving import NASTY, Client, data_in, recorded, serving, until, work

from rlprof import Profiler, record
from rlprof.analysis.report import build_report
from rlprof.errors import RlprofError
from rlprof.live.feed import Feed
from rlprof.report.html.charts import chart_data
from rlprof.report.html.document import sections
from rlprof.report.html.document import to_html as offline
from rlprof.serve.server import Served
from rlprof.session.reader import Session


def report_of(folder):
    with Session(folder) as session:
        return build_report(session)


def test_home_has_a_row_per_run_with_the_figures_of_its_report(client, runs):
    found = {row["folder"]: row for row in data_in(client.get("/").text, "runs-data")["rows"]}
    assert found.keys() == {folder.name for folder in runs.iterdir()}
    for folder in runs.iterdir():
        row, facts = found[folder.name], report_of(folder).facts
        assert row["steps_per_second"] == facts.progress.steps_per_second
        assert row["largest_share"] == facts.breakdown.largest.share
        assert row["wall_ns"] == facts.breakdown.wall_ns
        assert (row["state"], row["running"], row["problem"]) == ("finished", False, None)
        assert row["settings"]["envs"] == row["name"].removeprefix("ppo")


def test_the_page_of_a_run_is_the_page_of_its_report(client, run):
    page, report = client.get(f"/run/{run.name}").text, report_of(run)
    for name, part in sections(report).items():
        assert part in page, name
        assert part in offline(report), name
    data = data_in(page, "data")
    assert data.pop("recent") is None
    assert data == json.loads(json.dumps(chart_data(report)))


def test_an_ended_run_has_no_stream_and_no_live_figures(client, run):
    page = client.get(f"/run/{run.name}").text
    assert 'data-live=""' in page
    frame = data_in(page, "frame")
    assert (frame["state"], frame["running"], frame["lanes"]) == ("finished", False, [])
    assert [name for name, _ in client.events(f"/run/{run.name}/events")][-1] == "end"


def test_the_offline_report_can_be_downloaded(client, run):
    answer = client.get(f"/run/{run.name}/report.html")
    assert answer.text == offline(report_of(run))
    assert run.name in answer.headers["content-disposition"]


def test_two_runs_are_compared(client, runs):
    a, b = sorted(folder.name for folder in runs.iterdir())
    answer = client.get(f"/compare?a={a}&b={b}")
    assert answer.status == 200
    assert "Is B faster than A?" in answer.text
    assert a in answer.text
    assert "lr" not in answer.text.partition("What differs")[2]
    assert "envs" in answer.text.partition("What differs")[2]
    assert 'href="/"' in answer.text


@pytest.mark.parametrize("query", ["", "?a=x&b=y", "?a={0}", "?a={0}&b={0}", "?a=last&b={0}", "?a={0},{1}&b={1}"])
def test_a_comparison_that_is_impossible_is_a_sentence(client, runs, query):
    answer = client.get("/compare" + query.format(*sorted(folder.name for folder in runs.iterdir())))
    assert answer.status == 404
    assert answer.text.count("<p>") == 1


def test_scripts_and_styles_are_files_whose_address_changes_with_them(client):
    page = client.get("/").text
    for ending, kind in ((".js", "text/javascript"), (".css", "text/css")):
        path = next(part for part in page.split('"') if part.startswith("/asset/") and part.endswith(ending))
        answer = client.get(path)
        assert answer.status == 200
        assert answer.headers["content-type"].startswith(kind)
        assert "immutable" in answer.headers["cache-control"]
        assert client.get(path.replace("/asset/", "/asset/0")).status == 404


def test_hostile_names_are_text_everywhere(tmp_path):
    def hostile(profiler: Profiler) -> None:
        for _ in range(3):
            with profiler.iteration():
                for name in NASTY:
                    with profiler.profile(name):
                        time.sleep(0.0002)

    run = recorded(tmp_path, NASTY[0], hostile, **{NASTY[1]: NASTY[2]})
    renamed = run.rename(tmp_path / "<img src=x onerror=1>_20260101-000000")
    with serving(tmp_path) as served:
        client = Client(served).log_in()
        quoted = "/run/%3Cimg%20src=x%20onerror=1%3E_20260101-000000"
        for path in ("/", quoted, f"/compare?a={renamed.name[:4]}&b=x".replace(" ", "+")):
            page = client.get(path).text
            assert "<img" not in page
            assert "<script>" not in page
            assert "<b>bold" not in page
        assert data_in(client.get("/").text, "runs-data")["rows"][0]["folder"] == renamed.name
        assert client.get(quoted).status == 200


@pytest.fixture
def training(tmp_path):
    """A training in this process that goes on until it is told to end."""
    profiler, over, folder = Profiler(), threading.Event(), []
    began = threading.Event()

    def train():
        with record("live", dir=tmp_path, profiler=profiler, stacks=False) as recording:
            folder.append(recording.folder)
            while not over.is_set():
                work(profiler, 1)
                began.set()

    thread = threading.Thread(target=train)
    thread.start()
    assert began.wait(30)
    yield folder[0], over
    over.set()
    thread.join()


@pytest.mark.long
def test_a_running_training_is_streamed_until_it_ends(training):
    folder, over = training
    with serving(folder.parent) as served:
        client = Client(served).log_in()
        until(lambda: 'data-trained="yes"' in client.get(f"/run/{folder.name}").text)
        (row,) = data_in(client.get("/").text, "runs-data")["rows"]
        assert row["running"]
        page = client.get(f"/run/{folder.name}").text
        assert 'data-live="yes"' in page
        since = page.partition('data-since="')[2].partition('"')[0]
        reports, frames = [], []
        for name, content in client.events(f"/run/{folder.name}/events?since={since}"):
            if name == "end":
                break
            (reports if name == "report" else frames).append(content)
            if len(frames) >= 3 and reports:
                over.set()
        assert [report["version"] for report in reports] == sorted({report["version"] for report in reports})
        assert frames[0]["running"]
        assert not frames[-1]["running"]
        assert frames[-1]["state"] == "finished"
        final = report_of(folder)
        assert reports[-1]["parts"]["header"] == sections(final)["header"]
        assert dict(frames[-1]["facts"])["iterations"] == f"{final.facts.progress.iterations:,}"


@pytest.mark.long
def test_pages_share_one_reading_and_without_pages_nothing_is_read(training):
    folder, _ = training
    with serving(folder.parent) as served:
        client = Client(served).log_in()
        assert client.get(f"/run/{folder.name}").status == 200
        streams = [client.events(f"/run/{folder.name}/events?browser={number}") for number in range(8)]
        for stream in streams:
            next(stream)
        watches = served.application.watches
        assert list(watches) == [folder.name]
        assert watches[folder.name].is_pumping
        for stream in streams:
            stream.close()
        until(lambda: not watches[folder.name].is_pumping)


@pytest.mark.long
def test_one_browser_with_many_pages_gets_short_streams(training):
    """It has six connections to a server. Streams that stay open would leave none for loading a page."""
    folder, _ = training
    path = f"/run/{folder.name}/events?browser=one"
    with serving(folder.parent) as served:
        client = Client(served).log_in()
        streams = [client.events(path) for _ in range(4)]
        for stream in streams:
            next(stream)
        assert len(list(client.events(path))) <= 2
        for stream in streams:
            stream.close()


def test_a_browser_that_knows_an_old_version_gets_only_what_has_changed(client, served, run):
    page = client.get(f"/run/{run.name}").text
    since = page.partition('data-since="')[2].partition('"')[0]
    names = [name for name, _ in client.events(f"/run/{run.name}/events?since={since}")]
    assert "report" not in names
    for unknown in ("", "other.1", "x", f"{since}9x", "." * 99):
        names = [name for name, _ in client.events(f"/run/{run.name}/events?since={unknown}")]
        assert names[0] == "report"


def test_a_single_run_can_be_served(run):
    with serving(run) as served:
        assert served.address.partition("?")[0].endswith(f"/run/{run.name}")
        assert served.folder == run.parent.resolve()


def test_a_taken_port_is_an_error_only_if_it_was_requested(runs, served):
    with pytest.raises(RlprofError, match=f"Port {served.port} of 127.0.0.1 cannot be used"):
        Served(runs, port=served.port)
    one, other = Served(runs), Served(runs)
    assert one.port != other.port
    one.socket.close()
    other.socket.close()


def test_a_folder_that_is_missing_is_an_error(tmp_path):
    with pytest.raises(RlprofError, match="There is no folder"):
        Served(tmp_path / "missing")
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_comes_back_after_its_run_was_closed_gets_everything(client, served, run):
    """Versions count from 1 again: what the page has says nothing about them."""
    page = client.get(f"/run/{run.name}").text
    since = page.partition('data-since="')[2].partition('"')[0]
    del served.application.watches[run.name]
    names = [name for name, _ in client.events(f"/run/{run.name}/events?since={since}")]
    assert names[0] == "report"


def test_a_file_that_may_not_be_read_is_a_sentence(client, runs, monkeypatch):
    def refuse(_):
        raise PermissionError(13, "Permission denied", "session.db")

    monkeypatch.setattr("rlprof.serve.application.compare_runs", lambda *_: refuse(_))
    a, b = sorted(folder.name for folder in runs.iterdir())
    answer = client.get(f"/compare?a={a}&b={b}")
    assert answer.status == 500
    assert "This cannot be shown: session.db: Permission denied." in answer.text


def test_pages_that_are_loaded_at_once_read_the_session_once(runs, run):
    read = []

    class Counting(Feed):
        def refresh(self, force: bool = False) -> bool:
            read.extend([force] if force else [])
            return super().refresh(force)

    with serving(runs) as served:
        served.application.feed = Counting
        client = Client(served).log_in()
        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(client.get, [f"/run/{run.name}"] * 8))
    assert [answer.status for answer in answers] == [200] * 8
    assert read == [True]
