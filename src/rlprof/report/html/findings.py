"""The top of the HTML report: which run it was, the headline, and what to change."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator

from rlprof.analysis.facts import RUNNING
from rlprof.analysis.figures import duration, many, percent, rate, size
from rlprof.analysis.report import Report
from rlprof.render.html.advice import advice_card
from rlprof.render.html.markup import Markup, element, figures, join, plain_name, prose, sentence
from rlprof.report.headline import NOT_RECORDED, NOTABLE, first_try, incomplete, poor
from rlprof.report.html.shares import own_shares

_MOST_SETTINGS = 200


def header(report: Report) -> Markup:
    session = report.facts.session
    started = time.gmtime(session.started / 1e9)
    ended, missing = report.facts.ended, incomplete(report)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", started)
    when = element("time", time.strftime("%Y-%m-%d %H:%M:%S UTC", started), datetime=stamp)
    state = "still running, or killed: figures are as of its last flush" if ended == RUNNING else prose(ended)
    recorded = element("span", f"{duration(report.facts.breakdown.wall_ns)} recorded")
    how = element("span", state, class_=f"badge {'good' if ended == 'finished' and not missing else 'warn'}")
    particulars = element("dl", *_particulars(report), class_="particulars")
    parts = [
        element("p", "rlprof report", class_="kicker"),
        element("h1", plain_name(session.name)),
        element("p", when, recorded, how, class_="facts"),
        element("p", prose(missing), class_="badge warn") if missing else "",
        element("pre", element("code", prose(shlex.join(session.command))), tabindex="0", aria_label="command"),
        element("details", element("summary", "Machine, packages, git and settings"), particulars),
    ]
    return join(parts)


def _particulars(report: Report) -> Iterator[Markup]:
    session = report.facts.session
    found = [
        ("machine", f"{session.host}: {session.processor}, {many(session.cores, 'core')}, {size(session.memory)}"),
        ("platform", f"{session.platform}, Python {session.python}"),
        ("recorded by", "the C core" if session.core == "c" else "the Python twin: a span costs about 100 times more"),
        ("folder", session.folder),
        ("process", str(session.pid)),
    ]
    if session.git is not None:
        changed = ", with uncommitted changes" if session.git.changed else ""
        found.append(("git", f"{session.git.revision[:12]} on {session.git.branch}{changed}"))
    for title in ("packages", "environment", "settings"):
        shown = list(getattr(session, title).items())[:_MOST_SETTINGS]
        separator = " " if title == "packages" else "="
        found.append((title, ", ".join(f"{name}{separator}{value}" for name, value in shown) or "none"))
    if report.facts.artifacts:
        found.append(("files", ", ".join(artifact.path for artifact in report.facts.artifacts[:_MOST_SETTINGS])))
    for name, value in found:
        yield element("div", element("dt", name), element("dd", prose(value)))


def headline(report: Report) -> Markup:
    """How fast, what takes longest, and what rlprof cost."""
    facts = report.facts
    whole, progress = facts.breakdown, facts.progress
    if not whole.wall_ns:
        return element("p", NOT_RECORDED, class_="empty")
    shown = []
    if progress.steps_per_second is not None:
        shown.append(("steps per second", rate(progress.steps_per_second), many(progress.steps, "step")))
    largest = whole.largest
    remark = f"{duration(largest.ledger_ns)} in {plain_name(largest.name)}"
    if whole.after_startup_ns == whole.wall_ns:
        share = own_shares(report).get(largest.name, largest.share)
    else:
        share = largest.share
        remark += f", of {duration(whole.after_startup_ns)} since the training began"
    shown.append(("largest account", percent(share), remark))
    parts = {
        "of start-up": progress.startup_ns,
        "of prefill": progress.prefill_ns,
        "of evaluation": progress.evaluation_ns,
        "stopped": progress.suspended_ns,
        "at the end": progress.after_ns if progress.after_ns > NOTABLE * progress.training_ns else 0,
    }
    spent = [f"{duration(ns)} {what}" for what, ns in parts.items() if ns]
    if progress.iteration_ns is not None:
        spent.append(f"{many(progress.iterations, 'iteration')} of {duration(progress.iteration_ns.mean_ns)}")
    shown.append(("wall time", duration(whole.wall_ns), ", ".join(spent)))
    shown.append(("cost of rlprof", percent(whole.rows[-1].share), _cost(report)))
    warning = poor(report)
    return join([figures(shown), element("p", warning, class_="warning", role="note") if warning else ""])


def _cost(report: Report) -> str:
    """What the spans cost the training, and what writing and sampling used of another core."""
    own, used = report.facts.breakdown.rows[-1], report.facts.resources
    spans = f"{duration(own.ledger_ns)} ± {duration(own.uncertainty_ns)}"
    beside = [share for share in (used.flushing_share, used.sampling_share) if share is not None]
    return f"{spans}, and {sum(beside):.2f}% of one core in the background" if beside else spans


def findings(report: Report) -> Markup:
    """All advice, the largest gain first. `rlprof analyze` has the scores and thresholds."""
    advice = report.findings.advice
    if not advice:
        return element("p", sentence(first_try(report).sentence), class_="empty")
    return element("div", *(advice_card(item, item is advice[0]) for item in advice), class_="cards wide")
