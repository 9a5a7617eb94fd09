"""One Gram matrix: its spec, plan, tiles, and the operator over them."""
