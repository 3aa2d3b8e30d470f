"""The top of the HTML report: which run it was, the verdict, and what to change."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator

from rlprof.analysis.advice.advice import Advice
from rlprof.analysis.bottlenecks import Bottleneck
from rlprof.analysis.facts import RUNNING
from rlprof.analysis.figures import duration, many, percent, rate, size
from rlprof.analysis.report import Report
from rlprof.render.html.markup import Markup, bar, element, figures, join, plain_name, prose, sentence, swatch
from rlprof.report.html.shares import own_shares
from rlprof.report.verdict import NOTABLE, first_try, gain_of, incomplete

_MOST_CARDS = 6
_MOST_RECOMMENDATIONS = 12
_MOST_SETTINGS = 200


def header(report: Report) -> Markup:
    session = report.facts.session
    started = time.gmtime(session.started / 1e9)
    ended, missing = report.facts.ended, incomplete(report)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", started)
    when = element("time", time.strftime("%Y-%m-%d %H:%M:%S UTC", started), datetime=stamp)
    state = "still running, or killed: this is what its last flush left" if ended == RUNNING else prose(ended)
    return join(
        [
            element("p", "rlprof report", class_="kicker"),
            element("h1", plain_name(session.name)),
            element(
                "p",
                when,
                element("span", f"{duration(report.facts.breakdown.wall_ns)} recorded"),
                element(
                    "span",
                    state,
                    class_="badge good" if ended == "finished" and not missing else "badge warn",
                ),
                class_="facts",
            ),
            *([element("p", prose(missing), class_="badge warn")] if missing else []),
            element("pre", element("code", prose(shlex.join(session.command))), tabindex="0", aria_label="command"),
            element(
                "details",
                element("summary", "Machine, packages, git and settings"),
                element("dl", *_particulars(report), class_="particulars"),
            ),
        ]
    )


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
    for title, entries in (
        ("packages", session.packages),
        ("environment", session.environment),
        ("settings", session.settings),
    ):
        shown = list(entries.items())[:_MOST_SETTINGS]
        separator = " " if title == "packages" else "="
        found.append((title, ", ".join(f"{name}{separator}{value}" for name, value in shown) or "none"))
    if report.facts.artifacts:
        found.append(("files", ", ".join(artifact.path for artifact in report.facts.artifacts[:_MOST_SETTINGS])))
    for name, value in found:
        yield element("div", element("dt", name), element("dd", prose(value)))


def verdict(report: Report) -> Markup:
    """For who reads nothing else: how fast, what takes most, what to try first."""
    facts = report.facts
    whole, progress = facts.breakdown, facts.progress
    if not whole.wall_ns:
        return element("p", "Nothing was recorded: the profiler was not enabled.", class_="empty")
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
    turns = []
    if progress.startup_ns:
        turns.append(f"{duration(progress.startup_ns)} of start-up")
    if progress.prefill_ns:
        turns.append(f"{duration(progress.prefill_ns)} of prefill")
    if progress.evaluation_ns:
        turns.append(f"{duration(progress.evaluation_ns)} of evaluation")
    if progress.suspended_ns:
        turns.append(f"{duration(progress.suspended_ns)} stopped")
    if progress.after_ns > NOTABLE * progress.training_ns:
        turns.append(f"{duration(progress.after_ns)} at the end")
    if progress.iteration_ns is not None:
        turns.append(f"{many(progress.iterations, 'iteration')} of {duration(progress.iteration_ns.mean_ns)}")
    shown.append(("wall time", duration(whole.wall_ns), ", ".join(turns)))
    shown.append(("cost of rlprof", percent(whole.rows[-1].share), _cost(report)))
    return join([figures(shown), _first_try(report), _poor(report)])


def _cost(report: Report) -> str:
    """What the spans took of the training's time, and what writing and sampling took of the machine beside it."""
    own, used = report.facts.breakdown.rows[-1], report.facts.resources
    spans = f"{duration(own.ledger_ns)} ± {duration(own.uncertainty_ns)}"
    beside = [share for share in (used.flushing_share, used.sampling_share) if share is not None]
    return f"{spans}, and {sum(beside):.2f}% of one core beside" if beside else spans


def _first_try(report: Report) -> Markup:
    first = first_try(report)
    return element(
        "div",
        element("p", "Try first", class_="kicker"),
        element("p", sentence(first.why), class_="lead"),
        element("p", sentence(first.action)),
        element("p", element("span", first.gain, class_="badge good")) if first.gain else None,
        class_="try",
    )


def _poor(report: Report) -> Markup:
    expected = report.findings.expectation
    if expected is None or not expected.poor:
        return Markup()
    lost = expected.losses[0]
    return element(
        "p",
        element("b", f"{100 * expected.ratio:.0f}% of what its parts could do. "),
        f"Most is lost to {lost.what}: {duration(lost.ns)}.",
        class_="warning",
        role="note",
    )


def findings(report: Report) -> Markup:
    """Advice, recommendations, scores: what follows from the figures below."""
    found = report.findings
    advice = [advice_card(item) for item in found.advice]
    parts: list[str] = []
    if advice:
        parts.append(element("div", *advice, class_="cards wide"))
    else:
        parts.append(element("p", "No rule found evidence for a change of its own.", class_="empty"))
    if found.recommendations:
        parts += [element("h3", "Recommendations"), _recommendations(report)]
    scored = [item for item in found.bottlenecks[:_MOST_CARDS] if item.score >= 0.5]
    if scored:
        shares = own_shares(report)
        cards = [_bottleneck(item, shares.get(item.operation, item.share)) for item in scored]
        parts += [element("h3", "Bottlenecks by score"), element("div", *cards, class_="cards")]
        parts.append(
            element(
                "p",
                "Score, 0 to 100: 40 for the share of the wall time, 30 for 100 ms of its own a call or more, "
                "15 each for 100 MB or more of memory and of GPU memory.",
                class_="hint",
            )
        )
    return join(parts)


def advice_card(advice: Advice) -> Markup:
    gain = gain_of(advice)
    names = [element("code", plain_name(name)) for name in advice.operations[:8]]
    return element(
        "article",
        element("h3", sentence(advice.title)),
        element("p", element("span", gain, class_="badge good") if gain else None, *names, class_="chips"),
        element("h4", "Evidence"),
        element("ul", *(element("li", sentence(evidence)) for evidence in advice.evidence)),
        element("h4", "Do"),
        element("p", sentence(advice.action)),
        element("h4", "Expected gain"),
        element("p", gain or "Speed is not the point of it."),
        element("h4", "Check"),
        element("p", sentence(advice.check)),
        class_="card advice",
    )


def _recommendations(report: Report) -> Markup:
    found = report.findings.recommendations
    items = [
        element("li", element("span", item.severity, class_="badge warn"), " ", sentence(item.text))
        for item in found[:_MOST_RECOMMENDATIONS]
    ]
    if hidden := len(found) - len(items):
        items.append(element("li", f"{hidden:,} more"))
    return element("ul", *items, class_="plain")


def _bottleneck(item: Bottleneck, share: float) -> Markup:
    evidence = [f"{percent(share)} of the wall time", many(item.calls, "call")]
    if item.own_ns is not None:
        evidence.append(f"{duration(item.own_ns)} of its own a call")
    if item.memory_rise:
        evidence.append(f"up to {size(item.memory_rise)} of memory a call")
    if item.device_rise:
        evidence.append(f"up to {size(item.device_rise)} of GPU memory a call")
    return element(
        "article",
        element("h4", swatch(item.category), element("span", plain_name(item.operation))),
        element("p", element("b", f"{item.score:.0f}"), element("span", f"score, {item.category}"), class_="score"),
        bar(item.score, item.category),
        element("ul", *(element("li", line) for line in evidence)),
        class_="card",
    )
