"""Sine, cosine and arc tangent from additions, products and quotients alone, so that every machine gives the same bits.

Mathematics libraries differ in the last bit between machines; trajectories must not (physics 03, section
6.4). Here the leading terms are kept as sums of two numbers (Dekker's arithmetic), the small ones as one: results are
within 0.502 units in the last place of the true value, so nearly always the nearest number. Angles in radians.
"""

import math

from nclone_env.jit import called_kernel, kernel

PI, TWO_PI, HALF_PI = 3.141592653589793, 6.283185307179586, 1.5707963267948966
_QUARTERS = 0.6366197723675814  # 2 / pi
# Half a pi in three parts, the first two of 33 bits: their products with a small whole number are exact.
_HALF_PI_1, _HALF_PI_2, _HALF_PI_3 = 1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21
_SPLITTER = 134217729.0  # 2**27 + 1
# Terms of the series of sine, 1/3! and 1/5! as sums of two, then -1/7!, 1/9!, ...; the signs alternate.
_S3, _S3_LOW = -0.16666666666666666, -9.25185853854297e-18
_S5, _S5_LOW = 0.008333333333333333, 1.1564823173178714e-19
_SINE = tuple((-1) ** n / math.factorial(2 * n + 1) for n in range(3, 10))
# The same for cosine: 1/4! as a sum of two (1/2! is exact), then -1/6!, 1/8!, ...
_C4, _C4_LOW = 0.041666666666666664, 2.3129646346357427e-18
_COSINE = tuple((-1) ** n / math.factorial(2 * n) for n in range(3, 10))
# A rough arc tangent between 0 and 1, good to 1e-5; one step of Newton's method makes it exact.
_ROUGH = (0.999866, -0.3302995, 0.180141, -0.085133, 0.0208351)
_SLOPE, _BEND = 4.0 / PI, 4.0 / PI**2
COARSE = 0.0011
"""The largest error of :func:`coarse_sine`."""


@kernel
def two_sum(a, b):
    """Return (sum, rounding error) of two numbers."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@kernel
def split(a):
    """Return a number as the sum of two of half the digits."""
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high


@kernel
def two_product(a, b):
    """Return (product, rounding error) of two numbers."""
    product = a * b
    a_high, a_low = split(a)
    b_high, b_low = split(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@kernel
def add(a, a_low, b, b_low):
    """Return the sum of two sums of two numbers."""
    total, low = two_sum(a, b)
    low += a_low + b_low
    return two_sum(total, low)


@kernel
def multiply(a, a_low, b, b_low):
    """Return the product of two sums of two numbers."""
    product, low = two_product(a, b)
    low += a * b_low + a_low * b
    return two_sum(product, low)


@kernel
def sine_series(r, r_low, q, q_low):
    """Return the sine of r, at most a quarter of pi, as a sum of two numbers; q is its square."""
    tail = 0.0
    for i in range(6, -1, -1):
        tail = _SINE[i] + q * tail
    tail, tail_low = add(_S5, _S5_LOW, q * tail, 0.0)
    tail, tail_low = multiply(q, q_low, tail, tail_low)
    tail, tail_low = add(_S3, _S3_LOW, tail, tail_low)
    tail, tail_low = multiply(q, q_low, tail, tail_low)
    tail, tail_low = multiply(r, r_low, tail, tail_low)
    return add(r, r_low, tail, tail_low)


@kernel
def cosine_series(q, q_low):
    """Return the cosine as a sum of two numbers; q is the square of the angle, which is at most a quarter of pi."""
    tail = 0.0
    for i in range(6, -1, -1):
        tail = _COSINE[i] + q * tail
    tail, tail_low = add(_C4, _C4_LOW, q * tail, 0.0)
    tail, tail_low = multiply(q, q_low, tail, tail_low)
    tail, tail_low = add(-0.5, 0.0, tail, tail_low)
    tail, tail_low = multiply(q, q_low, tail, tail_low)
    return add(1.0, 0.0, tail, tail_low)


@called_kernel
def sin_cos_sums(angle):
    """Return (sine, rest, cosine, rest) of an angle below 2**20: each the sum of two numbers."""
    quarters = math.floor(angle * _QUARTERS + 0.5)
    r, r_low = two_sum(angle - quarters * _HALF_PI_1, -quarters * _HALF_PI_2)
    r, r_low = two_sum(r, r_low - quarters * _HALF_PI_3)
    q, q_low = multiply(r, r_low, r, r_low)
    s, s_low = sine_series(r, r_low, q, q_low)
    c, c_low = cosine_series(q, q_low)
    quadrant = int(quarters) & 3
    if quadrant == 0:
        return s, s_low, c, c_low
    if quadrant == 1:
        return c, c_low, -s, -s_low
    if quadrant == 2:
        return -s, -s_low, -c, -c_low
    return -c, -c_low, s, s_low


@kernel
def sin_cos(angle):
    """Return (sine, cosine) of an angle below 2**20."""
    s, _, c, _ = sin_cos_sums(angle)
    return s, c


@kernel
def rough_sin_cos(angle):
    """Return (sine, cosine) of an angle within 4e-6, much faster."""
    quarters = math.floor(angle * _QUARTERS + 0.5)
    r = angle - quarters * HALF_PI
    q = r * r
    s = r * (1.0 - q * (1.0 / 6.0 - q * (1.0 / 120.0 - q / 5040.0)))
    c = 1.0 - q * (0.5 - q * (1.0 / 24.0 - q / 720.0))
    quadrant = int(quarters)
    sine, cosine = (c, s) if quadrant & 1 else (s, c)  # without branches: none is foreseeable
    return -sine if quadrant & 2 else sine, -cosine if (quadrant + 1) & 2 else cosine


@kernel
def coarse_sine(angle):
    """Return the sine of an angle from -pi to pi within ``COARSE``: a parabola for each half, mended by its square."""
    y = angle * (_SLOPE - _BEND * abs(angle))
    return y * (0.775 + 0.225 * abs(y))


@kernel
def rough_atan2(y, x):
    """Return the angle of a vector within 1e-5."""
    across, along = abs(y), abs(x)
    steep = across > along
    t = along / across if steep else across / along
    q = t * t
    angle = t * (_ROUGH[0] + q * (_ROUGH[1] + q * (_ROUGH[2] + q * (_ROUGH[3] + q * _ROUGH[4]))))
    if steep:
        angle = HALF_PI - angle
    if x < 0.0:
        angle = PI - angle
    return -angle if y < 0.0 else angle


@kernel
def atan2(y, x):
    """Return the angle of a vector, -pi to pi; 0 for the zero vector. The sign of a zero is ignored.

    The length should be about 1; far below 1e-140 or above 1e140 the result is meaningless.
    """
    if x == 0.0 and y == 0.0:
        return 0.0
    angle = rough_atan2(y, x)
    s, s_low, c, c_low = sin_cos_sums(angle)
    yc, yc_low = multiply(y, 0.0, c, c_low)
    xs, xs_low = multiply(-x, 0.0, s, s_low)
    across, across_low = add(yc, yc_low, xs, xs_low)
    tangent = (across + across_low) / (x * c + y * s)  # of the remaining angle
    return angle + (tangent - tangent * tangent * tangent / 3.0)


@kernel
def wrap(angle):
    """Return an angle wrapped to -pi up to below pi; the argument may be off by one turn."""
    if angle >= PI:
        return angle - TWO_PI
    if angle < -PI:
        return angle + TWO_PI
    return angle
