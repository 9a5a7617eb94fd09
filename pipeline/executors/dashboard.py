"""Whether somebody serves a dashboard: Dask names an address also where there is none."""

from __future__ import annotations

from urllib.error import HTTPError
from urllib.request import urlopen

PATIENCE = 2.0  # seconds for an answer; the first page that a scheduler makes takes about one
FIRST_BYTES = 4096
WITHOUT_BOKEH = b"Dask needs bokeh"  # the page of a scheduler that would have a dashboard if it could


def serves_dashboard(link: str, patience: float = PATIENCE) -> bool:
    """True when the page is there: not without bokeh, behind a firewall, or where it is switched off."""
    try:
        with urlopen(link, timeout=patience) as page:
            return bool(page.status == 200) and WITHOUT_BOKEH not in page.read(FIRST_BYTES)
    except HTTPError as refused:
        refused.close()  # it holds the connection
        return False
    except (OSError, ValueError):
        return False
