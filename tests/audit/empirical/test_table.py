"""Panel (a) of Table SA1, to four decimals: its small epsilons take a while."""

import pytest

from yupana.audit.empirical.kernel_density import reproduce

pytestmark = pytest.mark.slow

# As printed: epsilon, mean, 2.5th and 97.5th percentile.
PRINTED = """
0.001 0.0010 0.0008 0.0013
0.005 0.0048 0.0039 0.0068
0.01 0.0099 0.0076 0.0130
0.05 0.0490 0.0390 0.0673
0.10 0.0980 0.0752 0.1262
0.15 0.1475 0.1181 0.1941
0.20 0.1988 0.1521 0.2639
0.25 0.2429 0.1853 0.3493
0.30 0.2824 0.2228 0.3806
0.35 0.3252 0.2651 0.4116
0.40 0.3482 0.2717 0.4360
0.45 0.3827 0.3140 0.4807
0.50 0.4052 0.3434 0.5195
"""


@pytest.mark.thorough
def test_panel_a_comes_out_to_four_decimals() -> None:
    rows = [row.as_json() for row in reproduce("a")]
    expected = [[float(number) for number in line.split()] for line in PRINTED.strip().splitlines()]
    assert [[row[key] for key in ("value", "mean", "lower", "upper")] for row in rows] == expected
