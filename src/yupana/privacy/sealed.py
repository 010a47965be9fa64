"""What tells the truth about records shows nothing of itself, and is not copied out of the process."""


class Sealed:
    """The parent of all that holds records or true counts."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: confidential>"

    def __reduce_ex__(self, _protocol: object) -> str:
        raise TypeError(f"{type(self).__name__} tells the truth about records, so it is not copied or pickled")
