"""Arrays on disk and in object stores; the only place that imports zarr. docs/storage.md says what it promises."""
