"""Arrays on disk and in object stores: knows no structure; the only place that imports zarr."""
