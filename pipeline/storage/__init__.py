"""Arrays on disk and in object stores; the only place that imports zarr. docs/what-done-means.md has its promises."""
