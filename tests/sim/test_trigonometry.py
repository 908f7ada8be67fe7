"""Sine, cosine and arc tangent against exact series, and their bits, which no machine may change."""

import math
import zlib
from fractions import Fraction

import numpy as np
import pytest

from nclone_env.sim.trigonometry import COARSE, PI, atan2, coarse_sine, sin_cos, wrap

ULPS = Fraction(502, 1000)  # what the module promises
DIGITS = 2**240


def rounded(value: Fraction) -> Fraction:
    """Return a fraction with 240 binary digits after the point, so that sums stay short."""
    return Fraction(round(value * DIGITS), DIGITS)


def exact_sin_cos(angle: float) -> tuple[Fraction, Fraction]:
    """Return sine and cosine by their series, at an eighth of the angle and doubled three times."""
    x = Fraction(angle) / 8
    term, k, sums = Fraction(1), 0, [Fraction(0), Fraction(0)]
    while k < 8 or abs(term) > Fraction(1, 2**230):
        sums[k % 2] += term if k % 4 < 2 else -term
        k += 1
        term = rounded(term * x / k)
    c, s = sums
    for _ in range(3):
        s, c = rounded(2 * s * c), rounded(c * c - s * s)
    return s, c


def ulps(value: float, exact: Fraction) -> Fraction:
    return abs(Fraction(value) - exact) / Fraction(math.ulp(float(exact)))


def angles(count: int, reach: float) -> np.ndarray:
    return np.random.default_rng(5).uniform(-reach, reach, count)


@pytest.mark.parametrize("reach", [1e-3, 1.0, 2 * PI, 30.0])
def test_sine_and_cosine_are_within_the_promised_error(reach):
    for angle in angles(150, reach).tolist():
        for value, exact in zip(sin_cos(angle), exact_sin_cos(angle), strict=True):
            assert ulps(value, exact) <= ULPS, angle


@pytest.mark.parametrize("angle", [0.0, PI / 4, PI / 2, PI, 3 * PI / 2, 2 * PI, -PI, -PI / 2, 22.0, 355.0])
def test_sine_and_cosine_near_the_axes(angle):
    assert sin_cos(angle) == tuple(float(exact) for exact in exact_sin_cos(angle))


def test_the_arc_tangent_is_within_the_promised_error():
    """The true angle t of (y, x): with a computed angle a, tan(t - a) = (y cos a - x sin a) / (x cos a + y sin a)."""
    vectors = np.random.default_rng(6).normal(size=(300, 2)) * np.array([1.0, 0.03])
    for y, x in [*vectors.tolist(), *vectors[:, ::-1].tolist()]:
        angle = float(atan2(y, x))
        s, c = exact_sin_cos(angle)
        error = (Fraction(y) * c - Fraction(x) * s) / (Fraction(x) * c + Fraction(y) * s)
        assert abs(error) / Fraction(math.ulp(angle)) <= ULPS, (y, x)


@pytest.mark.parametrize("length", [1.0, 0.1, 5.9])
def test_the_arc_tangent_of_whole_eighths_of_a_turn(length):
    for k in range(-3, 5):
        y, x = round(math.sin(k * PI / 4)) * length, round(math.cos(k * PI / 4)) * length
        assert atan2(y, x) == k * PI / 4
    assert atan2(0.0, 0.0) == 0.0


def test_angles_and_vectors_belong_together():
    for angle in angles(300, PI).tolist():
        s, c = sin_cos(angle)
        assert atan2(s, c) == pytest.approx(angle, abs=3e-16)


def test_the_coarse_sine_is_within_the_promised_error():
    errors = [abs(coarse_sine(angle) - math.sin(angle)) for angle in np.linspace(-PI, PI, 2001).tolist()]
    assert 0.9 * COARSE < max(errors) < COARSE


def test_wrapped_angles():
    assert wrap(PI) == -PI
    assert wrap(-PI) == -PI
    assert wrap(3.5) == 3.5 - 2 * PI
    assert wrap(-3.5) == -3.5 + 2 * PI
    assert wrap(3.0) == 3.0


def test_the_bits_are_always_the_same():
    values = []
    for angle in angles(2000, 7.0).tolist():
        s, c = sin_cos(angle)
        values.append((s, c, atan2(s * 1.3, c * 0.7)))
    assert zlib.crc32(np.array(values).astype("<f8").tobytes()) == 1920017768
