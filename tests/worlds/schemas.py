"""Schemas of TopDown."""

from yupana.topdown.queries import Attribute, Schema


def make_schema(**attributes: int | tuple[str, ...]) -> Schema:
    return Schema(
        tuple(
            Attribute(name, labels if isinstance(labels, tuple) else tuple(map(str, range(labels))))
            for name, labels in attributes.items()
        )
    )


PL94 = make_schema(hhgq=8, votingage=2, hispanic=2, cenrace=63)
