"""One Gram matrix: its spec, plan, tiles, and the operator over them. docs/gram.md says what flows through it."""
