"""One Gram matrix: its spec, plan, tiles, and the operator over them. docs/how-a-tile-is-made.md has the whole way."""
