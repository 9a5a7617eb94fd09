"""Why a worker is gone, in words: from the events that the scheduler keeps of it. Plain values in, a sentence out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gramline.pipeline.errors import gigabytes
from gramline.pipeline.executors.worker_settings import TERMINATE

MEMORY = "worker-restart-memory"  # the topic in which nannies write down what they end for want of memory
SILENT = "check-worker-ttl"  # how the scheduler calls its look at workers that say nothing
ENDED = "its process or its connection ended"

Events = Iterable[tuple[Any, Mapping[str, Any]]]  # time and content, as the scheduler keeps them


def loss_reason(worker: str, own: Events, restarts: Events) -> str | None:
    """Why `worker` went, from its `own` events and the `restarts` for memory; None where it was asked to go."""
    for _, event in restarts:
        if event.get("worker") == worker:
            used = gigabytes(float(event.get("rss", 0)))
            return f"it used {used}, {TERMINATE:.0%} of its memory limit or more, and is started again"
    removals = [event for _, event in own if event.get("action") == "remove-worker"]
    if not removals:
        return ENDED
    if removals[-1].get("expected"):
        return None
    if str(removals[-1].get("stimulus_id", "")).startswith(SILENT):
        return "it has not answered for too long"
    return ENDED
