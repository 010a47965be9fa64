"""TopDown strategies on the page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Final

from yupana.errors import ConfigError
from yupana.explore.form import (
    Chosen,
    Field,
    Form,
    Row,
    choice,
    read_terms,
    require_some,
    terms_fields,
)
from yupana.explore.scenario import Fault, Filled, RefusedError, Typed
from yupana.explore.strategy import KEPT, SHARES, FoundStrategy, StrategyForm, Weighed, WeighingPage
from yupana.plan.measurement import Mechanism
from yupana.privacy.exact import INFINITE, show_exact
from yupana.products.product import Product
from yupana.products.strategy import Strategy
from yupana.products.topdown.product import TOPDOWN
from yupana.products.topdown.strategy import (
    AnswerPair,
    StrategyTargets,
    TradeOff,
    find_strategy,
    in_one_pass,
    usual_least,
)
from yupana.products.topdown.tables import tables_of
from yupana.report.page import Section
from yupana.report.topdown import (
    FOUND,
    HERE,
    PRODUCTION,
    SampleBlocks,
    attributes_section,
    average_geounits,
    found_sections,
    frontier_section,
    loss_in_words,
    shares_section,
    spines_section,
)
from yupana.topdown.configuration import Configuration
from yupana.topdown.plan import SENSITIVITY

_PASSES: Final = {"own": "in the passes of the configuration", "together": "all queries of a geolevel together"}


@dataclass(frozen=True)
class TopdownPage(WeighingPage):
    """A strategy of TopDown: a configuration, whose budgets can be set.

    Attributes
    ----------
    key : str
    source : str
        The configuration: a built-in name, or a file.
    configuration : Configuration
    blocks : SampleBlocks
        To try spines on.
    title : str
        What is counted, or the name of its file.
    """

    key: str
    source: str
    configuration: Configuration
    blocks: SampleBlocks
    title: str
    product: Product[Configuration] = TOPDOWN
    filename: str = "topdown.json"

    @cached_property
    def form(self) -> Form:
        """A grid of queries by geolevel."""
        levels, system = self.configuration.levels, TOPDOWN.words.title
        queries = {q.name: q.size for level in levels for q, _ in self.configuration.queries[level]}
        return Form(
            title=self.title if self.title.startswith(system) else f"{system}, {self.title}",
            intro="How should the budget be shared out among geolevels and queries? Type the budget of a query, or the "
            "margin of error of its noisy answers; shares follow. Clear a box to leave a query out. You start from "
            f"{self.source}.",
            fields=(*terms_fields("90 by default"), *self._fields),
            rows=tuple(Row(name, name, f"{_answers(size)} a geounit") for name, size in queries.items()),
            columns={level: level.replace("_", " ") for level in levels},
            cells={
                (q.name, level): f"{level} {q.name}" for level in levels for q, _ in self.configuration.queries[level]
            },
            corner="Query",
            solving="the records of an average geounit of an invented state, and 51 times that state for the nation; "
            "finer queries are held to the same share of it",
            shares=True,
        )

    @property
    def _fields(self) -> tuple[Field, ...]:
        """How answers are estimated, where the configuration has passes."""
        if self.configuration.passes == in_one_pass(self.configuration).passes:
            return ()
        return (Field("passes", "Estimation", "Strategies are found for all together", choices=_PASSES),)

    @cached_property
    def strategy_form(self) -> StrategyForm | None:
        """Published tables and queries, and the geolevels with a share."""
        config = self.configuration
        if config.mechanism is not Mechanism.ZCDP:
            return None
        levels = [level for level in config.levels if config.shares[level] > 0]
        tables = {table.name: f"{table.size} variables" for table in tables_of(config.schema)}
        queries = {query.name: _answers(query.size) for level in levels for query, _ in config.queries[level]}
        # Where every geolevel has one query, only geolevels can share.
        sharing = max(sum(query.keeps_or_sums for query, _ in config.queries[level]) for level in levels) > 1
        shares = {key: words for key, words in SHARES.items() if (sharing if key == KEPT else len(levels) > 1)}
        if not shares:
            return None
        of_last = sorted(config.queries[levels[-1]], key=lambda shared: shared[0].size)
        first, second = (of_last[0][0].name, of_last[-1][0].name) if sharing else [next(iter(tables))] * 2
        return StrategyForm(
            answers=tables | queries,
            levels={level: level.replace("_", " ") for level in levels},
            shares=shares,
            least="If nothing is typed, "
            + ", or with shares of geolevels found ".join(
                f"{usual_least(config, StrategyTargets({}, levels))} of {whole}"
                for key, levels, whole in ((KEPT, None, "its geolevel"), ("found", {}, "the whole"))
                if key in shares
            ),
            start={f"query.{name}": "1" if name in tables else "" for name in tables | queries}
            | {f"level.{level}": "1" for level in levels}
            | {"loss": "sum", "shares": next(iter(shares)), "least": ""}
            | {"first": first, "first_level": levels[-1] if sharing else levels[-2]}
            | {"second": second, "second_level": levels[-1]},
        )

    def find(self, chosen: Chosen, weighed: Weighed) -> FoundStrategy:
        """Shares for what counts, and the frontier of two answers with strategies about it."""
        strategy, least = self._find(chosen, weighed), self._least(chosen, weighed)
        confidence = chosen.plan.confidence
        compared = {HERE: chosen.config, FOUND: strategy.found}
        if (used := self._production).schema == chosen.config.schema:
            compared = {PRODUCTION: used} | compared
        trade_off: Section | Fault
        try:
            between = TradeOff(chosen.config, AnswerPair(weighed.first, weighed.second, weighed.levels is None))
            frontier = between.frontier(least, list(compared.values()))
            trade_off = frontier_section(between, frontier, compared, confidence)
        except ConfigError as error:
            trade_off = Fault("strategy.pair", str(error).removeprefix("targets: "))
        return FoundStrategy(
            loss_in_words(strategy, weighed.loss),
            found_sections(strategy, confidence),
            trade_off,
        )

    def take(self, filled: Filled, chosen: Chosen, weighed: Weighed) -> Filled:
        """The shares found, for one estimation pass."""
        entries = TOPDOWN.entries(self._find(chosen, weighed).found)
        taken = filled.with_entries(
            {
                name: Typed(on=True, by="budget", value=show_exact(entry.budget))
                if entry.budget
                else replace(filled.entries[name], on=False)
                for name, entry in entries.items()
            }
        )
        return replace(taken, fields={**taken.fields, **{field.key: "together" for field in self._fields}})

    def _find(self, chosen: Chosen, weighed: Weighed) -> Strategy[Configuration]:
        shares = chosen.config.shares
        if faults := [
            Fault(f"strategy.level.{level}", "nothing of this geolevel is switched on, so its weight must be 0")
            for level in weighed.levels or ()
            if not shares[level]
        ]:
            raise RefusedError(faults)
        try:
            return find_strategy(chosen.config, _targets(weighed), weighed.loss, self._least(chosen, weighed))
        except ConfigError as error:
            field, _, words = str(error).rpartition(": ")
            raise RefusedError(
                [Fault("strategy.least", words)] if field == "least" else [Fault("strategy", str(error))]
            ) from None

    @staticmethod
    def _least(chosen: Chosen, weighed: Weighed) -> Fraction:
        return usual_least(chosen.config, _targets(weighed)) if weighed.least is None else weighed.least

    def start(self) -> Filled:
        """The configuration as it is."""
        filled = _settings(self.configuration)
        return replace(filled, fields={**filled.fields, **{field.key: "own" for field in self._fields}})

    def production(self, filled: Filled) -> Filled:
        """The run of 2020 with the same unit and root, where it has the same queries; else the start."""
        del filled
        there = {name: Fraction(entry.budget) for name, entry in TOPDOWN.entries(self._production).items()}
        mine = self.start()
        if set(there) - set(mine.entries):
            return mine
        return mine.with_entries(
            {
                name: Typed(
                    on=bool(there.get(name)), by="budget", value=show_exact(there.get(name) or Fraction(1, 100))
                )
                for name in mine.entries
            }
        )

    @cached_property
    def _production(self) -> Configuration:
        return TOPDOWN.production(self.configuration)

    def choose(self, filled: Filled) -> Chosen:
        """Understand the form."""
        faults: list[Fault] = []
        terms = read_terms(filled.fields, faults, self.configuration.mechanism)
        budgets = {
            name: terms.budget(name, entry, SENSITIVITY.bounded, faults) if entry.on else Fraction(0)
            for name, entry in filled.entries.items()
        }
        require_some(filled, faults)
        passes = choice("passes", filled.fields["passes"], _PASSES, faults) if self._fields else "own"
        if faults:
            raise RefusedError(faults)
        config = TOPDOWN.with_budgets(self.configuration, budgets)
        return terms.understood(TOPDOWN, in_one_pass(config) if passes == "together" else config)

    def sections(self, filled: Filled, chosen: Chosen) -> Sequence[Section]:
        """Shares, losses by attribute, least-squares errors on three spines."""
        del filled
        other, name = self._production, "production of 2020"
        return (
            shares_section(chosen.config, chosen.plan),
            attributes_section(chosen.config, other, float(chosen.delta), name),
            spines_section(chosen.config, other, chosen.plan, self.blocks, name),
        )

    def sizes(self, chosen: Chosen) -> Mapping[str, Fraction]:
        """The records of an average geounit."""
        levels = average_geounits(self.configuration, self.blocks)
        return {m.name: levels[m.level] for m in chosen.plan.measurements}


def _targets(weighed: Weighed) -> StrategyTargets:
    return StrategyTargets(weighed.queries, weighed.levels)


def _answers(size: int) -> str:
    return f"{size:,} answer{'s' * (size > 1)}"


def finite_configuration(source: str) -> Configuration:
    """Read a configuration that has noise.

    Raises
    ------
    ConfigError
        If it cannot be read, its budget is infinite, or it has areas of its own.
    """
    configuration = TOPDOWN.read(source)
    if configuration.areas is not None:
        raise ConfigError(
            f"config {source}: has areas of its own, and the explorer compares spines of the Census Bureau's blocks; "
            "yupana topdown plan shows its margins"
        )
    if configuration.budget == INFINITE:
        raise ConfigError(f"config {source}: its budget is infinite, and without noise there is nothing to explore")
    return configuration


def _settings(configuration: Configuration) -> Filled:
    return Filled(
        {"confidence": "90", "margins": "exact", "delta": "1e-10"},
        {
            name: Typed(on=entry.budget > 0, by="budget", value=show_exact(entry.budget or Fraction(1, 100)))
            for name, entry in TOPDOWN.entries(configuration).items()
        },
    )
