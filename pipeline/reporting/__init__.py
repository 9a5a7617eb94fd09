"""Runs as one HTML page each: tables, drawings and pictures made here, nothing fetched, no script."""
