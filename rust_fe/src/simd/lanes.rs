//! What an instruction set must offer so that the algorithms of this folder can be written once.

/// Samples that [`Lanes::load_frames`] reads from every frame at once.
pub(super) const GROUP: usize = 4;

/// Most lanes that any implementation has.
pub(super) const MAX_LANES: usize = 8;

/// A vector of doubles, one lane per frame.
///
/// Implementations for instruction sets beyond the baseline may be used only inside a function
/// that enables them; everything generic here is `#[inline(always)]` so that it ends up there.
pub(super) trait Lanes: Copy {
    /// Number of lanes, at most [`MAX_LANES`].
    const N: usize;
    /// The same value in every lane.
    fn splat(value: f64) -> Self;
    /// Lane `i` is `values[i]`.
    fn from_lanes(values: &[f64; MAX_LANES]) -> Self;
    /// Element `i` holds, in lane `l`, sample `at + i` of frame `l`.
    fn load_frames(frames: &Frames<'_>, at: usize) -> [Self; GROUP];
    /// Lane `i` is `values[i]`; there is one value per lane.
    fn load_f32(values: &[f32]) -> Self;
    /// `values[i]` is lane `i`, zero beyond the last lane.
    fn to_lanes(self) -> [f64; MAX_LANES];
    /// Round every lane to single precision; `to` has one place per lane.
    fn store_f32(self, to: &mut [f32]);
    /// `self + other`
    fn add(self, other: Self) -> Self;
    /// `self - other`
    fn sub(self, other: Self) -> Self;
    /// `self * other`
    fn mul(self, other: Self) -> Self;
    /// `self * factor + summand`
    fn mul_add(self, factor: Self, summand: Self) -> Self;
    /// `self * factor - subtrahend`
    fn mul_sub(self, factor: Self, subtrahend: Self) -> Self;
    /// `summand - self * factor`
    fn neg_mul_add(self, factor: Self, summand: Self) -> Self;
    /// The smaller of two; `other` if either is NaN.
    fn min(self, other: Self) -> Self;
    /// The larger of two; `other` if either is NaN.
    fn max(self, other: Self) -> Self;
    /// Natural logarithms of positive, finite, normal numbers, in place.
    fn ln(values: &mut [f32]);
}

/// One frame per lane, all of one length; surplus lanes are allowed.
pub(super) struct Frames<'a> {
    samples: &'a [f32],
    /// Each start plus `len` lies within `samples`: checked once, relied on by every load.
    starts: [usize; MAX_LANES],
    len: usize,
}

impl<'a> Frames<'a> {
    /// # Panics
    /// If a frame reaches beyond the samples.
    #[inline(always)]
    pub(super) fn new(samples: &'a [f32], starts: [usize; MAX_LANES], len: usize) -> Self {
        let last = samples
            .len()
            .checked_sub(len)
            .expect("a frame fits into the samples");
        for start in starts {
            assert!(start <= last, "a frame lies within the samples");
        }
        Self {
            samples,
            starts,
            len,
        }
    }

    /// Sample `at` of the frame in `lane`.
    #[inline(always)]
    pub(super) fn sample(&self, lane: usize, at: usize) -> f32 {
        self.samples[self.starts[lane] + at]
    }

    /// Where samples `at` to `at + GROUP - 1` of the frame in `lane` lie.
    #[inline(always)]
    pub(super) fn group(&self, lane: usize, at: usize) -> *const [f32; GROUP] {
        assert!(at + GROUP <= self.len, "a group lies within the frame");
        // SAFETY: `at + GROUP <= len`, and `new` has checked that `starts + len` is within bounds.
        unsafe { self.samples.as_ptr().add(self.starts[lane] + at).cast() }
    }
}

/// A vector of complex numbers.
#[derive(Clone, Copy)]
pub(super) struct Complex<V> {
    pub(super) re: V,
    pub(super) im: V,
}

impl<V: Lanes> Complex<V> {
    #[inline(always)]
    pub(super) fn add(self, other: Self) -> Self {
        Self {
            re: self.re.add(other.re),
            im: self.im.add(other.im),
        }
    }

    #[inline(always)]
    pub(super) fn sub(self, other: Self) -> Self {
        Self {
            re: self.re.sub(other.re),
            im: self.im.sub(other.im),
        }
    }

    /// `self - i other`
    #[inline(always)]
    pub(super) fn sub_i(self, other: Self) -> Self {
        Self {
            re: self.re.add(other.im),
            im: self.im.sub(other.re),
        }
    }

    /// `self + i other`
    #[inline(always)]
    pub(super) fn add_i(self, other: Self) -> Self {
        Self {
            re: self.re.sub(other.im),
            im: self.im.add(other.re),
        }
    }

    /// `self * (re + i im)`
    #[inline(always)]
    pub(super) fn rotate(self, by: Rotation) -> Self {
        let (re, im) = (V::splat(by.re), V::splat(by.im));
        Self {
            re: self.im.neg_mul_add(im, self.re.mul(re)),
            im: self.im.mul_add(re, self.re.mul(im)),
        }
    }

    /// `|self|^2`
    #[inline(always)]
    pub(super) fn norm_sqr(self) -> V {
        self.re.mul_add(self.re, self.im.mul(self.im))
    }
}

/// One complex factor of length 1, the same for every lane.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rotation {
    pub(super) re: f64,
    pub(super) im: f64,
}

impl Rotation {
    /// `exp(-2 pi i numerator / denominator)`
    pub(super) fn new(numerator: usize, denominator: usize) -> Self {
        let angle = std::f64::consts::TAU * numerator as f64 / denominator as f64;
        Self {
            re: angle.cos(),
            im: -angle.sin(),
        }
    }
}

/// `ln` to single precision, in a form that the compiler turns into vectors.
///
/// ```text
/// x = 2^e m, sqrt(1/2) <= m < sqrt(2)      ln x = e ln 2 + ln m
/// ```
///
/// Exact for powers of two up to the final rounding, hence for the floor FLT_EPSILON = 2^-23.
///
/// Source: Cephes `logf.c` (the polynomial).
#[inline(always)]
pub(super) fn ln_fused(values: &mut [f32]) {
    const SQRT_HALF_BITS: u32 = 0x3f35_04f3;
    for value in values {
        let bits = value.to_bits().wrapping_sub(SQRT_HALF_BITS);
        let e = ((bits as i32) >> 23) as f32;
        let m = f32::from_bits((bits & 0x007f_ffff) + SQRT_HALF_BITS);
        let f = m - 1.0;
        let mut p = 7.037_683_6e-2f32;
        for c in [
            -1.151_461e-1,
            1.167_699_87e-1,
            -1.242_014_1e-1,
            1.424_932_3e-1,
            -1.666_805_7e-1,
            2.000_071_5e-1,
            -2.499_999_4e-1,
            3.333_333e-1,
        ] {
            p = p.mul_add(f, c);
        }
        let square = f * f;
        let tail = e.mul_add(-2.121_944_4e-4, square * (-0.5f32) + square * f * p);
        *value = e.mul_add(0.693_359_4, f + tail);
    }
}
