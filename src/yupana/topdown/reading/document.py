"""A configuration of TopDown as the document that is read back as the same configuration. Public."""

from typing import Any

from yupana.privacy.exact import show_exact
from yupana.topdown.configuration import Configuration
from yupana.topdown.queries import Query


def configuration_document(configuration: Configuration) -> dict[str, Any]:
    """The configuration as JSON, every number exact and every default told."""
    return {
        "product": configuration.product,
        "privacy_unit": configuration.privacy_unit,
        "mechanism": configuration.mechanism.value,
        configuration.mechanism.budget_name: show_exact(configuration.budget),
        "invariants": {level: [q.name for q in queries] for level, queries in configuration.invariants.items()},
        "schema": {attribute.name: list(attribute.labels) for attribute in configuration.schema.attributes},
        "shares": {level: str(share) for level, share in configuration.shares.items()},
        "queries": {
            level: {query.name: str(share) for query, share in of_level}
            for level, of_level in configuration.queries.items()
            if of_level
        },
        "passes": {
            level: {
                **({"estimate": _names(passes.estimate)} if passes.estimate else {}),
                "round": _names(passes.round),
            }
            for level, passes in configuration.passes.items()
        },
        "recodes": {
            recode.name: {"of": recode.attribute, "groups": _groups(recode.factor)}
            for recode in configuration.recodes.values()
        },
        "constraints": {
            **({"group_quarters": configuration.group_quarters} if configuration.group_quarters else {}),
            "structural_zeros": [
                {
                    attribute.name: level
                    for attribute, level in zip(configuration.schema.attributes, levels, strict=True)
                    if level is not None
                }
                for levels in configuration.structural_zeros
            ],
        },
        **_spine(configuration),
    }


def _spine(configuration: Configuration) -> dict[str, Any]:
    """The areas of the configuration, or how the spine is built."""
    spine, areas = configuration.spine, configuration.areas
    if areas is not None:
        return {"areas": {"levels": list(areas.levels), "of": areas.pairs}}
    return {
        "spine": {
            "kind": spine.kind,
            **({} if spine.fanout_cutoff is None else {"fanout_cutoff": spine.fanout_cutoff}),
            "entity_threshold": spine.entity_threshold,
            "bypass_cutoff": spine.bypass_cutoff,
            "grouping": spine.grouping,
            "classes": list(spine.classes),
            "aian_areas": list(spine.aian_areas),
            "strong_mcd_states": [f"{state:02d}" for state in spine.strong_mcd_states],
            "live": spine.live,
        },
    }


def _names(passes: tuple[tuple[Query, ...], ...]) -> list[list[str]]:
    return [[query.name for query in queries] for queries in passes]


def _groups(group_of: tuple[int, ...]) -> list[list[int]]:
    """The levels of each group, by the group of each level."""
    return [[level for level, group in enumerate(group_of) if group == number] for number in range(max(group_of) + 1)]
