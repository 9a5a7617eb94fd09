"""Why a worker is gone, from the scheduler's events."""

from __future__ import annotations

from typing import Any

import pytest

from gramline.pipeline.executors.worker_loss import ENDED, loss_reason

WORKER = "tcp://127.0.0.1:1"


def removed(**more: Any) -> tuple[float, dict[str, Any]]:
    return 0.0, {"action": "remove-worker", "expected": False, "stimulus_id": "handle-worker-cleanup-1"} | more


@pytest.mark.parametrize(
    ("own", "restarts", "reason"),
    [
        ([], [], ENDED),
        ([removed()], [], ENDED),
        ([removed()], [(0.0, {"worker": "tcp://127.0.0.1:2", "rss": 10**9})], ENDED),
        ([removed(expected=True)], [], None),
        ([removed(expected=True), (0.0, {"action": "add-worker"}), removed()], [], ENDED),
        ([removed(stimulus_id="check-worker-ttl-5")], [], "it has not answered for too long"),
        (
            [removed()],
            [(0.0, {"worker": WORKER, "rss": 2 * 10**9})],
            "it used 2.0 GB, 95% of its memory limit or more, and is started again",
        ),
    ],
)
def test_the_reason_in_words(own: Any, restarts: Any, reason: str | None) -> None:
    assert loss_reason(WORKER, own, restarts) == reason
