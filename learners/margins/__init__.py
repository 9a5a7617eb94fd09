"""Support vector machines over a Gram matrix: of positions and of label chains, with their duality gap."""
