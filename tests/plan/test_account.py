"""The ledger file: what several runs spend adds up, for records, persons and households; nothing is lost or forged."""

import fcntl
import json
import multiprocessing
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from plans import made_up, plan_of, production_plan
from safetab_worlds import random_world, seeded, write_data, write_parameters

from yupana.cli.main import main
from yupana.errors import BudgetError
from yupana.plan.account import OWN, RECORD, Due, Unit, add, as_zcdp, charge_account, check_account, is_loss
from yupana.plan.measurement import (
    Mechanism,
    PersonSensitivity,
    of_household_record,
    of_own_record,
)
from yupana.plan.plan import Neighbours, Plan
from yupana.privacy.exact import INFINITE, Budget
from yupana.products.phsafe.configuration import TAUS, budgets
from yupana.topdown.plan import make_plan
from yupana.topdown.reading.configuration import read_configuration

PERSON = Unit("person")
PLAN = production_plan(puerto_rico=True)
PURE = plan_of(budgets(puerto_rico=True), TAUS, Mechanism.PURE)


def own(path: Path, plan: Plan = PLAN, limit: Budget | None = None) -> object:
    """Charge records, and tell what they have spent under the plan's own neighbours."""
    return charge_account(path, "CEF", plan, {} if limit is None else {OWN: limit})[OWN]


def test_runs_add_up_on_disk_until_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    assert own(path, limit=Fraction(3)) == PLAN.loss()
    assert own(path) == 2 * PLAN.loss()
    before = path.read_text()
    with pytest.raises(BudgetError, match="past its limit of 3"):
        own(path)
    assert path.read_text() == before
    assert charge_account(path, "another census", PLAN)[OWN] == PLAN.loss()


def test_what_a_charge_would_refuse_is_told_before_and_nothing_is_charged(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    own(path, limit=3 * PLAN.loss())
    before, due = path.read_text(), Due(PLAN)
    check_account(path, "CEF", (due, due))
    check_account(path, "another census", (due,) * 3, {OWN: 3 * PLAN.loss()})
    for data, limits in (("CEF", {}), ("another census", {OWN: 2 * PLAN.loss()})):
        with pytest.raises(BudgetError, match="past its limit"):
            check_account(path, data, (due, due, due), limits)
    # A run that has been charged is charged once.
    check_account(path, "CEF", (Due(PLAN, "a"), Due(PLAN, "a"), Due(PLAN, "b")))
    with pytest.raises(BudgetError, match="past its limit"):
        check_account(path, "CEF", (Due(PLAN, "a"), Due(PLAN, "b"), Due(PLAN, "c")))
    with pytest.raises(BudgetError, match="this run has 'person'"):
        check_account(path, "CEF", (due,), unit=PERSON)
    assert path.read_text() == before


def test_a_limit_is_reached_exactly_but_not_passed(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    own(path, limit=2 * PLAN.loss())
    own(path)
    with pytest.raises(BudgetError, match="limit"):
        own(path)


def test_a_recorded_limit_cannot_be_changed_by_a_run(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    own(path, limit=Fraction(3))
    with pytest.raises(BudgetError, match="limit on 'CEF' is 3, not 4"):
        own(path, limit=Fraction(4))


def test_losses_of_different_definitions_are_never_added(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    own(path)
    with pytest.raises(BudgetError, match="mechanism"):
        own(path, PURE)
    with pytest.raises(BudgetError, match="privacy_unit"):
        own(path, replace(PLAN, privacy_unit="household record"))


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"format": "yupana-ledger-1"}', "\x00\x01", '{"format": 1, "data": 3}']
)
def test_a_file_that_is_no_ledger_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(content)
    with pytest.raises(BudgetError, match="not a ledger"):
        own(path)
    assert path.read_text() == content


def test_a_ledger_that_cannot_be_written_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match="ledger"):
        own(tmp_path / "missing" / "ledger.json")


def _charge(path: str, times: int) -> None:
    plan: Plan = production_plan(puerto_rico=True)
    for _ in range(times):
        own(Path(path), plan)


def test_runs_side_by_side_lose_no_charge(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_charge, args=(str(path), 5)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert len(json.loads(path.read_text())["data"]["CEF"]["runs"]) == 20


# --- the file -------------------------------------------------------------------------------------------------------


def test_a_ledger_has_one_account_whatever_link_leads_to_it(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to("real.json")
    own(link, limit=Fraction(3))
    own(real)
    assert link.is_symlink()
    for path in (real, link):
        with pytest.raises(BudgetError, match="limit of 3"):
            own(path)
    assert len(json.loads(real.read_text())["data"]["CEF"]["runs"]) == 2


def test_a_link_that_leads_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(BudgetError, match="ledger"):
        own(tmp_path / "a")


def test_a_ledger_with_a_second_name_is_refused(tmp_path: Path) -> None:
    own(tmp_path / "one.json")
    os.link(tmp_path / "one.json", tmp_path / "other.json")
    with pytest.raises(BudgetError, match="second name"):
        own(tmp_path / "other.json")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "ledger.json")
    with pytest.raises(BudgetError, match=r"not a regular file|no file; nothing was measured"):
        own(tmp_path / "ledger.json")


def test_a_file_beside_the_ledger_is_left_alone(tmp_path: Path) -> None:
    beside = tmp_path / "ledger.json.new"
    beside.write_text("mine")
    own(tmp_path / "ledger.json")
    own(tmp_path / "ledger.json")
    assert beside.read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ledger.json", "ledger.json.lock", "ledger.json.new"]


def test_a_charge_is_on_disk_before_anything_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.json"
    own(path)
    path.chmod(0o640)
    events: list[str] = []
    sync, rename = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        events.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        sync(descriptor)

    def renamed(self: Path, target: Path) -> Path:
        events.append("rename")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    own(path)
    assert events == ["file", "rename", "folder"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def ledger_of(**changes: object) -> str:
    run = {"time": "2026", "product": "phsafe", "losses": dict.fromkeys(RECORD.columns, "1")}
    account: dict[str, object] = {
        "unit": "record",
        "privacy_unit": "person record",
        "neighbours": "unbounded",
        "mechanism": "zcdp",
        "limits": {},
        "runs": [run],
    }
    for key, value in changes.items():
        if key in run:
            run[key] = value
        elif value is None:
            del account[key]
        else:
            account[key] = value
    return json.dumps({"format": "yupana-ledger-2", "data": {"CEF": account}})


def losses(loss: object) -> dict[str, object]:
    return {**dict.fromkeys(RECORD.columns, "1"), "own": loss}


FORGED = {
    "a negative loss": ledger_of(losses=losses("-1000")),
    "a loss that is a number": ledger_of(losses=losses(-1)),
    "an enormous loss": ledger_of(losses=losses("1e999")),
    "no loss": ledger_of(losses={}),
    "a limit that is no text": ledger_of(limits={"own": 5}),
    "a limit that is no number": ledger_of(limits={"own": "x"}),
    "a negative limit": ledger_of(limits={"own": "-1"}),
    "an enormous limit": ledger_of(limits={"own": "1e999"}),
    "a limit on nothing": ledger_of(limits={"nothing": "1"}),
    "no privacy unit": ledger_of(privacy_unit=None),
    "no neighbours": ledger_of(neighbours=None),
    "no mechanism": ledger_of(mechanism=None),
    "an unknown mechanism": ledger_of(mechanism="none"),
    "no unit": ledger_of(unit=None),
    "a household without a cap": ledger_of(unit="household"),
    "a household with half a person": ledger_of(unit="household", household_cap=0.5),
    "runs that are none": ledger_of(runs=5),
    "a key twice": ledger_of().replace('"limits"', '"runs": [], "limits"', 1),
    "deep brackets": "[" * 100_000,
    "deep objects": '{"data":' * 100_000,
    "a number of many digits": '{"format": ' + "9" * 5000 + "}",
    "a format that is a list": '{"format": [], "data": {}}',
    "an earlier ledger without a privacy unit": '{"format": "yupana-ledger-1", "data": {"CEF": {"runs": []}}}',
}


@pytest.mark.parametrize("content", FORGED.values(), ids=FORGED)
def test_a_ledger_that_cannot_be_right_is_refused_and_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(content)
    with pytest.raises(BudgetError, match="not a ledger"):
        own(path)
    assert path.read_text() == content


def test_the_ledger_that_the_forgeries_differ_from_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(ledger_of())
    assert own(path) == 1 + PLAN.loss()


@pytest.mark.parametrize("limit", [Fraction(-1), Fraction(10) ** 999])
def test_a_limit_that_the_file_could_not_keep_is_refused(tmp_path: Path, limit: Fraction) -> None:
    with pytest.raises(BudgetError, match="limit"):
        own(tmp_path / "ledger.json", limit=limit)
    assert not (tmp_path / "ledger.json").exists()


def test_an_earlier_ledger_is_read_and_its_charges_stand(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    runs = [{"time": "2026", "product": "phsafe", "loss": "1/2"}]
    account = {
        "privacy_unit": "person record", "neighbours": "unbounded", "mechanism": "zcdp", "limit": "3", "runs": runs
    }  # fmt: skip
    path.write_text(json.dumps({"format": "yupana-ledger-1", "data": {"CEF": account}}))
    spent = charge_account(path, "CEF", PLAN)
    assert spent[OWN] == Fraction(1, 2) + PLAN.loss()
    # What was not recorded is not guessed.
    assert spent["bounded"] is None
    with pytest.raises(BudgetError, match="recorded without"):
        charge_account(path, "CEF", PLAN, {"bounded": Fraction(99)})
    own(path)
    with pytest.raises(BudgetError, match="limit of 3"):
        own(path)
    assert json.loads(path.read_text())["format"] == "yupana-ledger-2"


@pytest.mark.parametrize("name", ["CEF ", " CEF", "CEF\u00a0", "CEF\n"])
def test_names_that_look_the_same_are_one_account(tmp_path: Path, name: str) -> None:
    path = tmp_path / "ledger.json"
    own(path)
    assert charge_account(path, name, PLAN)[OWN] == 2 * PLAN.loss()
    assert list(json.loads(path.read_text())["data"]) == ["CEF"]


@pytest.mark.parametrize("name", ["cef", "ＣＥＦ", "", "  ", "C\x1bEF"])
def test_names_that_may_be_a_slip_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "ledger.json"
    own(path)
    before = path.read_text()
    with pytest.raises(BudgetError, match="name"):
        charge_account(path, name, PLAN)
    assert path.read_text() == before


def test_an_earlier_ledger_with_one_name_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    account = json.loads(ledger_of())["data"]["CEF"]
    path.write_text(json.dumps({"format": "yupana-ledger-2", "data": {"CEF": account, "CEF ": account}}))
    with pytest.raises(BudgetError, match="one name"):
        own(path)


# --- columns, units, mechanisms -------------------------------------------------------------------------------------


def test_every_column_adds_up_and_can_be_limited(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    spent = charge_account(path, "CEF", PLAN, {"unbounded": Fraction(3), "bounded": Fraction(4)})
    assert spent == {
        "own": PLAN.loss(),
        "unbounded": PLAN.loss(),
        "same_household": 2 * PLAN.loss(),
        "bounded": 2 * PLAN.loss(),
    }
    with pytest.raises(BudgetError, match=r"bounded loss on 'CEF' to 4\.9066, past its limit of 4"):
        own(path)
    shown = json.loads(path.read_text())["data"]["CEF"]
    assert (shown["limits"], shown["spent"]["bounded"]) == ({"unbounded": "3", "bounded": "4"}, str(2 * PLAN.loss()))


def test_a_limit_on_neighbours_that_invariants_rule_out_is_refused(tmp_path: Path) -> None:
    topdown = make_plan(read_configuration("pl94-2020-us"))
    with pytest.raises(BudgetError, match="invariants leave no such neighbours"):
        charge_account(tmp_path / "ledger.json", "CEF", topdown, {"unbounded": Fraction(9)})
    spent = charge_account(tmp_path / "ledger.json", "CEF", topdown, {"bounded": Fraction(9)})
    assert spent["unbounded"] is None
    assert spent["bounded"] == topdown.loss()


def test_products_of_different_records_add_up_by_person(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    charge_account(path, "CEF", PLAN, unit=PERSON)
    persons = made_up("safetab-p", of_own_record, Fraction(2))
    charge_account(path, "CEF", persons, unit=PERSON)
    households = made_up("safetab-h", lambda s: of_household_record(s, Mechanism.ZCDP), Fraction(3))
    spent = charge_account(path, "CEF", households, unit=PERSON)
    rho = PLAN.loss()
    assert spent == {
        "unbounded": rho + 2 + 2 * 3,
        "same_household": 2 * rho + 2 * 2 + 2 * 3,
        "bounded": 2 * rho + 2 * 2 + 8 * 3,
    }
    topdown = charge_account(path, "CEF", make_plan(read_configuration("pl94-2020-us")), unit=PERSON)
    assert topdown["unbounded"] is None
    units = charge_account(path, "CEF", make_plan(read_configuration("h1-2020-us")), unit=PERSON)
    h1 = make_plan(read_configuration("h1-2020-us")).loss()
    assert units["same_household"] == topdown["same_household"]
    assert units["bounded"] == topdown["bounded"] + 2 * h1


@pytest.mark.parametrize(("mechanism", "factor"), [(Mechanism.ZCDP, 16), (Mechanism.PURE, 4)])
def test_a_household_of_k_persons_costs_k_squared_or_k_times_a_person(
    tmp_path: Path, mechanism: Mechanism, factor: int
) -> None:
    plan = made_up("safetab-p", of_own_record, Fraction(1, 2), mechanism)
    of_person = charge_account(tmp_path / "p.json", "CEF", plan, unit=PERSON)
    of_household = charge_account(tmp_path / "h.json", "CEF", plan, unit=Unit("household", 4))
    assert of_household == {column: factor * loss for column, loss in of_person.items()}


def test_a_household_without_a_cap_has_no_loss() -> None:
    with pytest.raises(BudgetError, match="without a cap"):
        Unit("household")
    with pytest.raises(BudgetError, match="cap"):
        Unit("person", 4)
    with pytest.raises(BudgetError, match="between 1 and"):
        Unit("household", 10**400)


def test_units_and_caps_are_never_mixed(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    charge_account(path, "CEF", PLAN, unit=Unit("household", 4))
    for unit in (Unit("household", 5), PERSON, RECORD):
        with pytest.raises(BudgetError, match="must not be added"):
            charge_account(path, "CEF", PLAN, unit=unit)


def test_pure_losses_enter_an_account_under_zcdp_as_half_their_square(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    charge_account(path, "CEF", made_up("safetab-p", of_own_record, Fraction(2)), unit=PERSON)
    pure = made_up("phsafe", of_own_record, Fraction(3), Mechanism.PURE)
    spent = charge_account(path, "CEF", pure, unit=PERSON)
    assert spent["unbounded"] == 2 + Fraction(9, 2)
    assert spent["bounded"] == 2 * 2 + Fraction(36, 2)
    # zCDP promises no pure DP.
    charge_account(path, "another", pure, unit=PERSON)
    with pytest.raises(BudgetError, match="mechanism"):
        charge_account(path, "another", made_up("safetab-p", of_own_record), unit=PERSON)


def test_a_plan_that_bounds_no_loss_of_a_person_is_refused(tmp_path: Path) -> None:
    plan = made_up("topdown", of_own_record)
    nothing = replace(plan, measurements=(replace(plan.measurements[0], person=None),))
    with pytest.raises(BudgetError, match="bounds no loss of one person"):
        charge_account(tmp_path / "ledger.json", "CEF", nothing, unit=PERSON)


def test_a_run_that_goes_on_is_charged_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    first = charge_account(path, "CEF", PLAN, {OWN: PLAN.loss()}, run="one")
    assert charge_account(path, "CEF", PLAN, {OWN: PLAN.loss()}, run="one") == first
    with pytest.raises(BudgetError, match="limit"):
        charge_account(path, "CEF", PLAN, run="another")
    cheaper = replace(PLAN, measurements=PLAN.measurements[1:])
    with pytest.raises(BudgetError, match="another loss"):
        charge_account(path, "CEF", cheaper, run="one")


def test_an_infinite_loss_passes_every_limit(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    boundless = made_up("phsafe", of_own_record, INFINITE)
    with pytest.raises(BudgetError, match="to inf, past its limit of 3"):
        charge_account(path, "CEF", boundless, {"bounded": Fraction(3)}, unit=PERSON)
    assert charge_account(path, "CEF", boundless, unit=PERSON)["bounded"] == INFINITE
    assert charge_account(path, "CEF", boundless, unit=PERSON)["bounded"] == INFINITE


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--unit", "household"), "without a cap"),
        (("--household-cap", "4"), "cap"),
        (("--unit", "person", "--limit", "3"), "unit person has no loss 'own' to limit"),
        (("--limit", "sideways=3"), "sideways"),
        (("--limit", "bounded=1,bounded=2"), "bounded"),
        (("--limit", "bounded=-1"), "negative"),
    ],
)
def test_the_command_line_refuses_what_has_no_meaning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    ledger = ("--ledger", str(tmp_path / "ledger.json"), "--dataset", "CEF")
    try:
        # Before any data are looked at.
        status = main(["topdown", "run", "cook-2010", "nowhere", str(tmp_path / "out"), *ledger, *options])
    except SystemExit as stopped:
        status = int(stopped.code or 0)
    assert status == 2
    assert message in capsys.readouterr().err


def test_both_safetabs_run_into_one_account_of_persons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = random_world(seeded(5), noise="some")
    world.config.definition = "zcdp"
    parameters, data = write_parameters(tmp_path / "parameters", world), write_data(tmp_path / "data", world)
    ledger = ("--ledger", str(tmp_path / "ledger.json"), "--dataset", "CEF", "--unit", "person")
    outs = {name: str(tmp_path / name) for name in ("safetab-p", "safetab-h")}
    totals = ("--totals", f"{outs['safetab-p']}/T01001.csv")
    for name, more in (("safetab-p", ()), ("safetab-h", totals)):
        assert main([name, "run", str(parameters), str(data), outs[name], *ledger, *more]) == 0
    capsys.readouterr()
    expected = dict.fromkeys(PERSON.columns, Fraction(0))
    for name in outs:
        assert main([name, "plan", str(parameters), "--json"]) == 0
        of_person = json.loads(capsys.readouterr().out)["totals"]["person"]
        expected = {column: expected[column] + Fraction(of_person[f"{column}_rho"]) for column in expected}
    account = json.loads((tmp_path / "ledger.json").read_text())["data"]["CEF"]
    assert {column: Fraction(loss) for column, loss in account["spent"].items()} == expected
    assert [run["product"] for run in account["runs"]] == ["safetab-p", "safetab-h"]
    # Records of persons and of households are never added.
    other = ("--ledger", str(tmp_path / "other.json"), "--dataset", "CEF", "--overwrite")
    assert main(["safetab-p", "run", str(parameters), str(data), outs["safetab-p"], *other]) == 0
    assert main(["safetab-h", "run", str(parameters), str(data), outs["safetab-h"], *other, *totals]) == 2
    assert "must not be added" in capsys.readouterr().err


# --- word by word ---------------------------------------------------------------------------------------------------


def told(path: Path, data: str = "CEF", plan: Plan = PLAN, limits: dict[str, Budget] | None = None, **more: Any) -> str:  # noqa: ANN401
    """What a refused charge says, after the name of the file."""
    with pytest.raises(BudgetError) as refused:
        charge_account(path, data, plan, limits or {}, **more)
    message = str(refused.value)
    start = f"ledger {path}: "
    assert message.startswith(start) or "ledger /" not in message
    return message.removeprefix(start)


def test_what_a_refused_charge_says_of_terms(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    own(path)
    kept = "losses on 'CEF' are kept with "
    other = ", and the two must not be added. Use another name or another ledger."
    assert told(path, plan=PURE) == f"{kept}mechanism 'zcdp'; this run has 'pure'{other}"
    assert told(path, plan=replace(PLAN, privacy_unit="household")) == (
        f"{kept}privacy_unit 'person record'; this run has 'household'{other}"
    )
    assert told(path, plan=replace(PLAN, neighbours=Neighbours.BOUNDED)) == (
        f"{kept}neighbours 'unbounded'; this run has 'bounded'{other}"
    )
    assert told(path, unit=PERSON) == f"{kept}unit 'record'; this run has 'person'{other}"
    charge_account(path, "H", PLAN, unit=Unit("household", 4))
    assert told(path, "H", unit=Unit("household", 5)) == (
        f"losses on 'H' are kept with household_cap 4; this run has 5{other}"
    )
    pure = made_up("phsafe", of_own_record, mechanism=Mechanism.PURE)
    charge_account(path, "P", pure, unit=PERSON)
    assert told(path, "P", made_up("phsafe", of_own_record), unit=PERSON) == (
        f"losses on 'P' are kept with mechanism 'pure'; this run has 'zcdp'{other}"
    )


def test_what_a_refused_charge_says_of_limits(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    assert told(path, limits={"other": Fraction(1)}) == (
        "unit record has no loss 'other' to limit; name one of own, unbounded, same_household, bounded"
    )
    for limit in (Fraction(-1), 10**300 + Fraction(1, 2)):
        assert told(path, limits={OWN: limit}) == "a limit is zero or more, at most 1e300, or Infinity"
    assert charge_account(path, "CEF", PLAN, {OWN: Fraction(5, 2), "bounded": Fraction(10) ** 300})
    assert told(path, limits={OWN: Fraction(3)}) == "the limit on 'CEF' is 5/2, not 3"
    assert told(path, limits={"bounded": INFINITE}) == f"the bounded limit on 'CEF' is {10**300}, not Infinity"
    spent = float(3 * PLAN.loss())
    own(path, limit=Fraction(5, 2))
    assert told(path) == (
        f"this run would bring the loss on 'CEF' to {spent:g}, past its limit of 5/2. Nothing was measured."
    )
    charge_account(path, "B", PLAN, {"unbounded": INFINITE, "bounded": Fraction(3)})
    assert told(path, "B") == (
        f"this run would bring the bounded loss on 'B' to {float(4 * PLAN.loss()):g}, past its limit of 3. "
        "Nothing was measured."
    )
    topdown = make_plan(read_configuration("pl94-2020-us"))
    assert told(path, "T", topdown, {"unbounded": Fraction(9)}) == (
        "the unbounded limit on 'T' cannot be kept, as a run has no such loss: its invariants leave no such "
        "neighbours, or it was recorded without. Nothing was measured."
    )
    assert charge_account(path, "Z", PLAN, {"same_household": INFINITE, OWN: PLAN.loss()})[OWN] == PLAN.loss()
    assert told(path, "N", limits={OWN: Fraction(0)}).endswith("past its limit of 0. Nothing was measured.")


def test_limits_given_later_add_to_those_recorded(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    charge_account(path, "CEF", PLAN, {OWN: Fraction(9)})
    charge_account(path, "CEF", PLAN, {"bounded": Fraction(8)})
    charge_account(path, "CEF", PLAN, {OWN: Fraction(9)})
    assert json.loads(path.read_text())["data"]["CEF"]["limits"] == {"own": "9", "bounded": "8"}


def test_what_a_refused_charge_says_of_names(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    own(path)
    none = "a name for the data in the ledger must have letters, and stand on one line"
    assert told(path, "") == told(path, "a\x00b") == none
    assert told(path, "cef") == "holds 'CEF'; is 'cef' the same data? Then write the name as there"
    account = json.loads(ledger_of())["data"]["CEF"]
    both = {"format": "yupana-ledger-2", "data": {"CEF": account, "x": account, "cef ": account}}
    path.write_text(json.dumps(both))
    assert told(path, "Cef") == (
        "holds 'CEF' and 'cef ', which are one name; put their runs together under one of them. Nothing was measured"
    )
    charge_account(path, " Zensus\t 2030 ", PLAN)
    charge_account(path, "Zensus 2030", PLAN)
    charge_account(path, "Ce\u0301", PLAN)
    assert charge_account(path, "C\u00e9", PLAN)[OWN] == 2 * PLAN.loss()
    assert set(json.loads(path.read_text())["data"]) == {"CEF", "cef ", "x", "Zensus 2030", "C\u00e9"}


def test_a_name_that_an_earlier_ledger_wrote_with_spaces_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(ledger_of().replace('"CEF"', '" CEF  2030"'))
    assert own(path) == PLAN.loss()
    assert charge_account(path, "CEF 2030", PLAN)[OWN] == 1 + PLAN.loss()
    assert list(json.loads(path.read_text())["data"]) == [" CEF  2030", "CEF"]


def test_what_the_charge_of_a_named_run_says(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    charge_account(path, "CEF", PLAN, run="one")
    before = path.read_text()
    another = "the run to go on with was charged on 'CEF' with another loss"
    assert told(path, plan=replace(PLAN, measurements=PLAN.measurements[1:]), run="one") == another
    assert told(path, plan=replace(PLAN, product="other"), run="one") == another
    assert charge_account(path, "CEF", PLAN, run="one")[OWN] == PLAN.loss()
    assert path.read_text() == before
    # Runs without a name are each of their own.
    own(path)
    own(path)
    assert [run.get("run") for run in json.loads(path.read_text())["data"]["CEF"]["runs"]] == ["one", None, None]


def test_the_ledger_as_it_stands_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    plan = replace(made_up("phsafe", of_own_record, Fraction(1, 3)), fixed_total=False)
    charge_account(path, "H", plan, {"bounded": INFINITE}, unit=Unit("household", 2), run="one")
    charge_account(path, "R", plan, {OWN: Fraction(2)})
    shown = json.loads(path.read_text())
    times = [account["runs"][0].pop("time") for account in shown["data"].values()]
    assert all(datetime.fromisoformat(time).utcoffset() == timedelta(0) and len(time) == 25 for time in times)
    household = {"unbounded": "4/3", "same_household": "8/3", "bounded": "8/3"}
    record = {"own": "1/3", "unbounded": "1/3", "same_household": None, "bounded": "2/3"}
    assert shown == {
        "format": "yupana-ledger-2",
        "data": {
            "H": {
                "unit": "household",
                "household_cap": 2,
                "mechanism": "zcdp",
                "limits": {"bounded": "Infinity"},
                "spent": household,
                "runs": [{"product": "phsafe", "losses": household, "run": "one"}],
            },
            "R": {
                "unit": "record",
                "privacy_unit": "record",
                "neighbours": "unbounded",
                "mechanism": "zcdp",
                "limits": {"own": "2"},
                "spent": record,
                "runs": [{"product": "phsafe", "losses": record}],
            },
        },
    }
    assert path.read_text().startswith('{\n "format": "yupana-ledger-2",\n "data": {\n  "H": {')
    again = charge_account(path, "H", plan, unit=Unit("household", 2))
    assert again == {"unbounded": Fraction(8, 3), "same_household": Fraction(16, 3), "bounded": Fraction(16, 3)}
    assert charge_account(path, "R", plan)["same_household"] is None
    runs = json.loads(path.read_text())["data"]["H"]["runs"]
    assert ([run["time"] for run in runs][:1], [run.get("run") for run in runs]) == (times[:1], ["one", None])


def test_whom_the_files_let_read(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    mask = os.umask(0o026)
    try:
        own(path)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "ledger.json.lock").stat().st_mode) == 0o600
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ledger.json", "ledger.json.lock"]


def test_what_a_refused_charge_says_of_the_file(tmp_path: Path) -> None:
    measured = "; nothing was measured"
    assert told(tmp_path / "missing" / "l") == f"No such file or directory{measured}"
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert told(tmp_path / "a") in {
        f"a link that leads to itself{measured}",
        f"Too many levels of symbolic links{measured}",
    }
    (tmp_path / "folder").mkdir()
    assert told(tmp_path / "folder") == f"not a regular file{measured}"
    own(tmp_path / "one")
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    assert told(tmp_path / "one") == (
        "the file has a second name (a hard link), which would keep an old state of it; "
        "remove one of the names. Nothing was measured"
    )
    (tmp_path / "none").write_text("{}")
    assert told(tmp_path / "none") == (
        "not a ledger of the form yupana-ledger-2 or yupana-ledger-1; it is left as it is and nothing was measured"
    )


def test_bytes_that_are_no_text_are_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "ledger.json").write_bytes(b'{"format": "\xff\xfe\xfa"}')
    assert told(tmp_path / "ledger.json").startswith("not a ledger")


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "ledger.json.lock").symlink_to(tmp_path / "elsewhere")
    assert told(tmp_path / "ledger.json") == "Too many levels of symbolic links; nothing was measured"
    assert not (tmp_path / "elsewhere").exists()


def test_a_ledger_that_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, opened = tmp_path / "ledger.json", os.open
    own(path)

    def refuses(name: Any, flags: int, mode: int = 0o777) -> int:  # noqa: ANN401
        if Path(name) == path:
            raise PermissionError(13, "Permission denied")
        return opened(name, flags, mode)

    monkeypatch.setattr(os, "open", refuses)
    assert told(path) == "Permission denied; nothing was measured"


def test_a_full_disk_leaves_the_ledger_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.json"
    own(path)
    before = path.read_text()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert told(path) == "No space left on device; nothing was measured"
    assert path.read_text() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ledger.json", "ledger.json.lock"]


def test_a_folder_that_takes_no_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, opened = tmp_path / "ledger.json", os.open
    own(path)

    def refuses(name: Any, flags: int, mode: int = 0o777) -> int:  # noqa: ANN401
        if Path(name).name.startswith(".ledger.json."):
            raise PermissionError(13, "Permission denied")
        return opened(name, flags, mode)

    monkeypatch.setattr(os, "open", refuses)
    assert told(path) == "Permission denied; nothing was measured"


def test_a_ledger_written_anew_lies_beside_the_old_one_under_a_name_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, names, rename = tmp_path / "ledger.json", [], Path.replace

    def renamed(self: Path, target: Path) -> Path:
        names.append((self.parent, self.name[:13], len(self.name), target))
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", renamed)
    own(path)
    assert names == [(tmp_path, ".ledger.json.", 45, path)]


def test_the_lock_is_held_while_the_ledger_is_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, rename = tmp_path / "ledger.json", Path.replace

    def renamed(self: Path, target: Path) -> Path:
        lock = os.open(tmp_path / "ledger.json.lock", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(lock)
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", renamed)
    own(path)


def of_unit(unit: str, columns: tuple[str, ...], **more: object) -> str:
    run = {"time": "2026", "product": "phsafe", "losses": dict.fromkeys(columns, "1"), **more}
    account = {"unit": unit, "household_cap": 3, "mechanism": "zcdp", "limits": {}, "runs": [run]}
    return json.dumps({"format": "yupana-ledger-2", "data": {"CEF": account}})


def test_accounts_of_every_unit_are_read(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    for unit in (PERSON, Unit("household", 3)):
        path.write_text(of_unit(unit.name, unit.columns, run="one"))
        before = charge_account(tmp_path / "other.json", unit.name, PLAN, unit=unit)
        assert charge_account(path, "CEF", PLAN, unit=unit) == {c: 1 + loss for c, loss in before.items()}  # type: ignore[operator]
        assert json.loads(path.read_text())["data"]["CEF"]["runs"][0]["run"] == "one"
    path.write_text(of_unit("household", PERSON.columns).replace('"household_cap": 3', '"household_cap": 1'))
    assert charge_account(path, "CEF", PLAN, unit=Unit("household", 1))["unbounded"] == 1 + PLAN.loss()
    path.write_text(ledger_of(losses={**losses("1"), "bounded": None}, limits={"own": str(10**300)}))
    assert charge_account(path, "CEF", PLAN)["bounded"] is None


@pytest.mark.parametrize(
    "content",
    [
        of_unit("household", PERSON.columns).replace('"household_cap": 3', '"household_cap": 0'),
        of_unit("household", PERSON.columns).replace('"household_cap": 3', '"household_cap": "3"'),
        of_unit("household", PERSON.columns).replace('"household_cap": 3', '"household_cap": true'),
        of_unit("household", PERSON.columns).replace('"household_cap": 3', '"household_cap": null'),
        of_unit("person", PERSON.columns, time=5),
        of_unit("person", PERSON.columns, product=5),
        of_unit("person", PERSON.columns, run=5),
        of_unit("person", ("unbounded", "bounded")),
        of_unit("person", PERSON.columns).replace('"limits": {}', '"limits": {"own": "1"}'),
        of_unit("family", PERSON.columns),
        of_unit("person", PERSON.columns).replace("ledger-2", "ledger-3"),
        ledger_of(neighbours="none"),
        ledger_of(privacy_unit=5),
        ledger_of(losses=losses(str(10**300) + ".5")),
        ledger_of(limits=[]),
    ],
)
def test_other_accounts_that_cannot_be_right_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(content)
    assert told(path, unit=Unit("household", 3)).startswith("not a ledger")
    assert path.read_text() == content


def earlier(**changes: object) -> str:
    run = {"time": "2026", "product": "phsafe", "loss": changes.pop("loss", "1/2")}
    account = {
        "privacy_unit": "person record", "neighbours": "unbounded", "mechanism": "zcdp", "limit": None, "runs": [run],
        **changes,
    }  # fmt: skip
    return json.dumps({"format": "yupana-ledger-1", "data": {"CEF": account}})


def test_an_earlier_ledger_without_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(earlier())
    spent = charge_account(path, "CEF", PLAN)
    assert spent == {"own": Fraction(1, 2) + PLAN.loss(), "unbounded": None, "same_household": None, "bounded": None}
    written = json.loads(path.read_text())["data"]["CEF"]
    assert (written["limits"], written["mechanism"]) == ({}, "zcdp")
    assert (written["unit"], written["privacy_unit"], written["neighbours"]) == ("record", "person record", "unbounded")
    assert written["runs"][0] == {
        "time": "2026",
        "product": "phsafe",
        "losses": {"own": "1/2", "unbounded": None, "same_household": None, "bounded": None},
    }
    for wrong in ({"loss": 1}, {"loss": "-1"}, {"limit": 1}, {"limit": "-1"}, {"mechanism": "x"}, {"privacy_unit": 1}):
        path.write_text(earlier(**wrong))
        assert told(path).startswith("not a ledger")


# --- units ----------------------------------------------------------------------------------------------------------


def test_what_units_that_are_none_are_told() -> None:
    for unit, cap, message in (
        ("household", None, "a household has no loss without a cap: declare the most persons one can have"),
        ("person", 4, "a cap on persons has a meaning for unit household, not for unit person"),
        ("record", 1, "a cap on persons has a meaning for unit household, not for unit record"),
        ("household", 0, "a household has between 1 and 99999 persons"),
        ("household", 100_000, "a household has between 1 and 99999 persons"),
    ):
        with pytest.raises(BudgetError, match=f"^{message}$"):
            Unit(unit, cap)  # type: ignore[arg-type]
    assert [Unit("household", cap).cap for cap in (1, 99_999)] == [1, 99_999]


def test_limits_are_on_losses_that_a_unit_has() -> None:
    RECORD.check_columns(["own", "bounded"])
    PERSON.check_columns(["unbounded", "same_household", "bounded"])
    told = "unit household has no loss 'own' to limit; name one of unbounded, same_household, bounded"
    with pytest.raises(BudgetError, match=f"^{told}$"):
        Unit("household", 2).check_columns(["bounded", "own"])


def test_the_losses_of_a_plan_by_unit() -> None:
    plan = made_up("phsafe", lambda s: of_household_record(s, Mechanism.ZCDP), Fraction(1, 2))
    assert RECORD.losses(plan) == {
        "own": Fraction(1, 2),
        "unbounded": Fraction(1, 2),
        "bounded": 1,
        "same_household": None,
    }
    assert PERSON.losses(plan) == {"unbounded": 1, "same_household": 1, "bounded": 4}
    assert Unit("household", 3).losses(plan) == {"unbounded": 9, "same_household": 9, "bounded": 36}
    fixed = made_up("phsafe", lambda _: PersonSensitivity(None, Fraction(18), Fraction(36)))
    assert PERSON.losses(fixed) == {"unbounded": None, "same_household": 2, "bounded": 4}
    nobody = replace(plan, measurements=(replace(plan.measurements[0], person=None),))
    message = (
        "phsafe bounds no loss of one person, as a change of one person alters the records of others "
        "(docs/person-loss.md); it cannot be added up by person or household"
    )
    with pytest.raises(BudgetError) as refused:
        PERSON.losses(nobody)
    assert str(refused.value) == message


def test_losses_add_and_turn_into_rho() -> None:
    one = {"a": Fraction(3), "b": None, "c": Fraction(1), "d": INFINITE}
    assert as_zcdp(one) == {"a": Fraction(9, 2), "b": None, "c": Fraction(1, 2), "d": INFINITE}
    other = {"a": Fraction(2), "b": Fraction(1), "c": None, "d": Fraction(1)}
    assert add(one, other) == {"a": Fraction(5), "b": None, "c": None, "d": INFINITE}


def test_losses_that_a_ledger_can_keep() -> None:
    kept = [Fraction(0), Fraction(1), Fraction(10) ** 300, INFINITE]
    assert all(map(is_loss, kept))
    assert not any(map(is_loss, [Fraction(-1, 10**9), Fraction(10) ** 300 + 1]))
