"""The report of a session: facts, and the findings that follow from them. Every output is rendered from this."""

from __future__ import annotations

from dataclasses import dataclass

from rlprof.analysis.advice import advise
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.notes import Note, notes
from rlprof.analysis.bottlenecks import Bottleneck, Recommendation, bottlenecks, recommendations
from rlprof.analysis.expectation import Expectation, expectation
from rlprof.analysis.facts import Facts, gather_facts
from rlprof.analysis.rollout import Rollout, rollout
from rlprof.session.reader import Session

SCHEMA_VERSION = 2


@dataclass(frozen=True, slots=True)
class Findings:
    bottlenecks: tuple[Bottleneck, ...]
    recommendations: tuple[Recommendation, ...]
    findings: tuple[Finding, ...]
    """What to change, the largest predicted gain first."""
    notes: tuple[Note, ...]
    """What makes the figures of this run doubtful: the state of the machine."""
    expectation: Expectation | None
    rollout: Rollout | None


@dataclass(frozen=True, slots=True)
class Report:
    schema_version: int
    facts: Facts
    findings: Findings


def build_report(session: Session) -> Report:
    facts = gather_facts(session)
    return Report(SCHEMA_VERSION, facts, find(facts))


def find(facts: Facts, min_calls: int = 1) -> Findings:
    return Findings(
        bottlenecks=bottlenecks(facts.operations, min_calls),
        recommendations=recommendations(facts.operations, min_calls),
        findings=advise(facts),
        notes=notes(facts),
        expectation=expectation(facts.breakdown, facts.operations, facts.progress),
        rollout=rollout(facts.breakdown),
    )
