"""What can go wrong between a packed structure and a tile, each said in one sentence."""


class KernelError(ValueError):
    """Any input a kernel refuses."""


class KernelParameterError(KernelError):
    """A kernel, observation kernel or prior was built with a value it cannot use."""


class PackingError(KernelError):
    """A structure, feature, label or prior row is not well formed; names the structure and the position."""


class KernelOverflowError(KernelError, OverflowError):
    """A kernel value left the range of the tile's dtype; names the two structures and what to change."""

    def __str__(self) -> str:
        """The sentence alone; the two structure numbers follow it in `args`."""
        return str(self.args[0]) if self.args else ""
