//! Short transforms of 2, 4 and 16 numbers, and passes made of them.

use std::sync::atomic::{Ordering, compiler_fence};

use super::lanes::{Complex, Lanes, Rotation};

/// One pass over one block: butterflies, then twiddles.
#[inline(always)]
pub(super) fn butterflies<V: Lanes, const R: usize>(
    z: &mut [Complex<V>],
    stride: usize,
    twiddles: &[Rotation],
) where
    [Complex<V>; R]: Dft,
{
    for j in 0..stride {
        let twiddles = &twiddles[j * (R - 1)..(j + 1) * (R - 1)];
        let mut x = [z[j]; R];
        for q in 1..R {
            x[q] = z[j + q * stride];
        }
        let x = x.dft();
        z[j] = x[0];
        for k in 1..R {
            z[j + k * stride] = x[k].rotate(twiddles[k - 1]);
        }
    }
}

/// A short transform of as many numbers as the array holds, in natural order.
pub(super) trait Dft {
    fn dft(self) -> Self;
}

impl<V: Lanes> Dft for [Complex<V>; 2] {
    #[inline(always)]
    fn dft(self) -> Self {
        let [a, b] = self;
        [a.add(b), a.sub(b)]
    }
}

impl<V: Lanes> Dft for [Complex<V>; 4] {
    #[inline(always)]
    fn dft(self) -> Self {
        let [a, b, c, d] = self;
        let (s0, d0, s1, d1) = (a.add(c), a.sub(c), b.add(d), b.sub(d));
        [s0.add(s1), d0.sub_i(d1), s0.sub(s1), d0.add_i(d1)]
    }
}

/// `count` butterflies side by side, their inputs `stride` apart.
#[inline(always)]
pub(super) fn radix16_pass<V: Lanes, const SHORT: bool>(
    z: &mut [Complex<V>],
    count: usize,
    stride: usize,
    twiddles: &[Rotation],
) {
    for j in 0..count {
        radix16::<V, SHORT>(z, j, stride, &twiddles[15 * j..15 * j + 15]);
    }
}

/// One butterfly of sixteen: four by four, with the factors `w^(p q)`, `w = exp(-2 pi i / 16)`,
/// between, and the twiddles, if any, behind. If `SHORT`, the last three inputs are zero.
///
/// Each inner factor is split into a length, left to the additions that follow (an addition with
/// a factor costs nothing extra), and a rest that takes one such addition a part.
/// The fences emit nothing; they keep the compiler from loading everything first, which costs
/// more spills than there are results.
#[inline(always)]
pub(super) fn radix16<V: Lanes, const SHORT: bool>(
    z: &mut [Complex<V>],
    at: usize,
    stride: usize,
    twiddles: &[Rotation],
) {
    let half = std::f64::consts::FRAC_1_SQRT_2;
    let cos = V::splat(COS);
    let [a0, a1, a2, a3] = column::<V, false>(z, at, 4 * stride);
    let [b0, b1, b2, b3] = column::<V, SHORT>(z, at + stride, 4 * stride);
    let [c0, c1, c2, c3] = column::<V, SHORT>(z, at + 2 * stride, 4 * stride);
    let [d0, d1, d2, d3] = column::<V, SHORT>(z, at + 3 * stride, 4 * stride);

    store(z, at, stride, 0, [a0, b0, c0, d0].dft(), twiddles);

    // b w, c w^2, d w^3
    let c = c1.eighth();
    let (s0, t0) = (a1.add_scaled(c, half), a1.sub_scaled(c, half));
    let (b, d) = (b1.sixteenth(), d1.three_sixteenths());
    store(
        z,
        at,
        stride,
        1,
        last(s0, t0, b.add(d), b.sub(d), cos),
        twiddles,
    );

    // b w^2, c w^4, d w^6
    let (s0, t0) = (a2.sub_i(c2), a2.add_i(c2));
    let (b, d) = (b2.eighth(), d2.eighth());
    store(
        z,
        at,
        stride,
        2,
        last(s0, t0, b.sub_i(d), b.add_i(d), V::splat(half)),
        twiddles,
    );

    // b w^3, c w^6, d w^9
    let c = c3.eighth();
    let (s0, t0) = (a3.sub_i_scaled(c, half), a3.add_i_scaled(c, half));
    let (b, d) = (b3.three_sixteenths(), d3.sixteenth());
    store(
        z,
        at,
        stride,
        3,
        last(s0, t0, b.sub(d), b.add(d), cos),
        twiddles,
    );
}

/// Transform of four numbers, the last of which is zero if `SHORT`.
#[inline(always)]
fn column<V: Lanes, const SHORT: bool>(
    z: &[Complex<V>],
    at: usize,
    stride: usize,
) -> [Complex<V>; 4] {
    compiler_fence(Ordering::SeqCst);
    let [a, b, c] = [z[at], z[at + stride], z[at + 2 * stride]];
    if SHORT {
        let (s0, d0) = (a.add(c), a.sub(c));
        return [s0.add(b), d0.sub_i(b), s0.sub(b), d0.add_i(b)];
    }
    [a, b, c, z[at + 3 * stride]].dft()
}

/// Store results `k`, `k + 4`, `k + 8`, `k + 12`.
#[inline(always)]
fn store<V: Lanes>(
    z: &mut [Complex<V>],
    at: usize,
    stride: usize,
    k: usize,
    y: [Complex<V>; 4],
    twiddles: &[Rotation],
) {
    for (i, y) in y.into_iter().enumerate() {
        let k = k + 4 * i;
        z[at + k * stride] = if k == 0 || twiddles.is_empty() {
            y
        } else {
            y.rotate(twiddles[k - 1])
        };
    }
    compiler_fence(Ordering::SeqCst);
}

/// The second half of a transform of four, `s1` and `d1` still to be multiplied by `scale`.
#[inline(always)]
fn last<V: Lanes>(
    s0: Complex<V>,
    d0: Complex<V>,
    s1: Complex<V>,
    d1: Complex<V>,
    scale: V,
) -> [Complex<V>; 4] {
    [
        Complex {
            re: s1.re.mul_add(scale, s0.re),
            im: s1.im.mul_add(scale, s0.im),
        },
        Complex {
            re: d1.im.mul_add(scale, d0.re),
            im: d1.re.neg_mul_add(scale, d0.im),
        },
        Complex {
            re: s1.re.neg_mul_add(scale, s0.re),
            im: s1.im.neg_mul_add(scale, s0.im),
        },
        Complex {
            re: d1.im.neg_mul_add(scale, d0.re),
            im: d1.re.mul_add(scale, d0.im),
        },
    ]
}

/// Cosine and tangent of 2 pi / 16.
const COS: f64 = 0.923_879_532_511_286_7;
const TAN: f64 = 0.414_213_562_373_095_1;

impl<V: Lanes> Complex<V> {
    /// `self exp(-2 pi i / 8) sqrt(2)`
    #[inline(always)]
    fn eighth(self) -> Self {
        Self {
            re: self.re.add(self.im),
            im: self.im.sub(self.re),
        }
    }

    /// `self exp(-2 pi i / 16) / COS`
    #[inline(always)]
    fn sixteenth(self) -> Self {
        let tan = V::splat(TAN);
        Self {
            re: self.im.mul_add(tan, self.re),
            im: self.re.neg_mul_add(tan, self.im),
        }
    }

    /// `self exp(-2 pi i 3 / 16) / COS`
    #[inline(always)]
    fn three_sixteenths(self) -> Self {
        let tan = V::splat(TAN);
        Self {
            re: self.re.mul_add(tan, self.im),
            im: self.im.mul_sub(tan, self.re),
        }
    }

    /// `self + scale other`
    #[inline(always)]
    fn add_scaled(self, other: Self, scale: f64) -> Self {
        let scale = V::splat(scale);
        Self {
            re: other.re.mul_add(scale, self.re),
            im: other.im.mul_add(scale, self.im),
        }
    }

    /// `self - scale other`
    #[inline(always)]
    fn sub_scaled(self, other: Self, scale: f64) -> Self {
        let scale = V::splat(scale);
        Self {
            re: other.re.neg_mul_add(scale, self.re),
            im: other.im.neg_mul_add(scale, self.im),
        }
    }

    /// `self + i scale other`
    #[inline(always)]
    fn add_i_scaled(self, other: Self, scale: f64) -> Self {
        let scale = V::splat(scale);
        Self {
            re: other.im.neg_mul_add(scale, self.re),
            im: other.re.mul_add(scale, self.im),
        }
    }

    /// `self - i scale other`
    #[inline(always)]
    fn sub_i_scaled(self, other: Self, scale: f64) -> Self {
        let scale = V::splat(scale);
        Self {
            re: other.im.mul_add(scale, self.re),
            im: other.re.neg_mul_add(scale, self.im),
        }
    }
}
