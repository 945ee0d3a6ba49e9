//! Power spectra of real signals, one signal per lane.
//!
//! A complex transform of half the length over (even, odd) samples, then the usual split. The
//! complex transform works in place, decimating in frequency by 16 as long as that divides, then
//! by 4 and 2; its result stays in digit-reversed order and `order` says where each bin lies.

use super::lanes::{Complex, Lanes, Rotation};

/// Everything about a transform that depends only on its length.
#[derive(Debug)]
pub(super) struct FftPlan {
    /// Half the length of the real signal.
    half: usize,
    passes: Vec<Pass>,
    /// Bin `k` of the complex transform lies at `order[k]`.
    order: Vec<usize>,
    /// `exp(-2 pi i k / len)` for `k` up to a quarter of the length.
    split: Vec<Rotation>,
}

#[derive(Debug)]
struct Pass {
    radix: usize,
    /// Distance of the inputs of one butterfly.
    stride: usize,
    /// `exp(-2 pi i j k / (radix stride))`, `radix - 1` factors (k from 1) for each j.
    twiddles: Vec<Rotation>,
}

impl FftPlan {
    /// Plan for real signals of `len` samples, a power of two, at least 2.
    pub(super) fn new(len: usize) -> Self {
        assert!(len.is_power_of_two() && len >= 2, "length must be a power of two, at least 2");
        let half = len / 2;
        let mut passes = Vec::new();
        let mut size = half;
        while size > 1 {
            let radix = [16, 4, 2].into_iter().find(|r| size % r == 0).unwrap_or(2);
            let stride = size / radix;
            let factors = |j| (1..radix).map(move |k| Rotation::new(j * k, size));
            passes.push(Pass { radix, stride, twiddles: (0..stride).flat_map(factors).collect() });
            size = stride;
        }
        let position = |mut bin: usize| {
            passes.iter().fold(0, |at, pass| {
                let digit = bin % pass.radix;
                bin /= pass.radix;
                at + digit * pass.stride
            })
        };
        let order = (0..half).map(position).collect();
        let split = (0..=half / 2).map(|k| Rotation::new(k, len)).collect();
        Self { half, passes, order, split }
    }

    /// Complex places that a signal takes.
    pub(super) fn half(&self) -> usize {
        self.half
    }

    /// Power of bins 0 to half - 1, four times; `z` is the signal as (even, odd) pairs and is
    /// destroyed.
    #[inline(always)]
    pub(super) fn power<V: Lanes>(&self, z: &mut [Complex<V>], power: &mut [V]) {
        if let Ok(z) = <&mut [Complex<V>; 256]>::try_from(&mut *z) {
            // The lengths that matter here, written out so that no bound needs a check.
            let [first, _] = &self.passes[..] else { unreachable!("256 = 16 * 16") };
            butterflies(z, 16, &first.twiddles, dft16);
            for block in z.as_chunks_mut().0 {
                *block = dft16(*block);
            }
        } else {
            for pass in &self.passes {
                for block in z.chunks_exact_mut(pass.radix * pass.stride) {
                    match pass.radix {
                        16 => butterflies(block, pass.stride, &pass.twiddles, dft16),
                        4 => butterflies(block, pass.stride, &pass.twiddles, dft4),
                        _ => butterflies(block, pass.stride, &pass.twiddles, dft2),
                    }
                }
            }
        }
        self.split_power(z, power);
    }

    /// Spectrum of the real signal from that of its (even, odd) pairs.
    ///
    /// ```text
    /// e = Z[k] + conj(Z[M-k])   o = Z[k] - conj(Z[M-k])   t = -i w^k o    w = exp(-2 pi i / 2M)
    /// 2 X[k] = e + t            2 conj(X[M-k]) = e - t
    /// ```
    #[inline(always)]
    fn split_power<V: Lanes>(&self, z: &[Complex<V>], power: &mut [V]) {
        let dc = z[0].re.add(z[0].im);
        power[0] = dc.add(dc).mul(dc.add(dc));
        for k in 1..=self.half / 2 {
            let (a, b) = (z[self.order[k]], z[self.order[self.half - k]]);
            let even = Complex { re: a.re.add(b.re), im: a.im.sub(b.im) };
            let odd = Complex { re: a.re.sub(b.re), im: a.im.add(b.im) };
            let turned = odd.rotate(self.split[k]);
            power[k] = even.sub_i(turned).norm_sqr();
            power[self.half - k] = even.add_i(turned).norm_sqr();
        }
    }
}

/// One pass over one block: butterflies, then twiddles.
#[inline(always)]
fn butterflies<V: Lanes, const R: usize>(
    z: &mut [Complex<V>],
    stride: usize,
    twiddles: &[Rotation],
    dft: impl Fn([Complex<V>; R]) -> [Complex<V>; R],
) {
    for j in 0..stride {
        let twiddles = &twiddles[j * (R - 1)..(j + 1) * (R - 1)];
        let out = dft(std::array::from_fn(|q| z[j + q * stride]));
        z[j] = out[0];
        for k in 1..R {
            z[j + k * stride] = out[k].rotate(twiddles[k - 1]);
        }
    }
}

#[inline(always)]
fn dft2<V: Lanes>([a, b]: [Complex<V>; 2]) -> [Complex<V>; 2] {
    [a.add(b), a.sub(b)]
}

#[inline(always)]
fn dft4<V: Lanes>([a, b, c, d]: [Complex<V>; 4]) -> [Complex<V>; 4] {
    let (s0, d0, s1, d1) = (a.add(c), a.sub(c), b.add(d), b.sub(d));
    [s0.add(s1), d0.sub_i(d1), s0.sub(s1), d0.add_i(d1)]
}

/// Four by four, with the factors `exp(-2 pi i p q / 16)` between.
#[inline(always)]
fn dft16<V: Lanes>(x: [Complex<V>; 16]) -> [Complex<V>; 16] {
    const C1: f64 = 0.923_879_532_511_286_7;
    const S1: f64 = 0.382_683_432_365_089_8;
    const W1: Rotation = Rotation { re: C1, im: -S1 };
    const W3: Rotation = Rotation { re: S1, im: -C1 };
    const W9: Rotation = Rotation { re: -C1, im: S1 };
    let r = V::splat(std::f64::consts::FRAC_1_SQRT_2);
    // exp(-2 pi i 2/16) = (1 - i) / sqrt 2, exp(-2 pi i 6/16) = (-1 - i) / sqrt 2
    let w2 = |c: Complex<V>| Complex { re: c.re.add(c.im).mul(r), im: c.im.sub(c.re).mul(r) };
    let w4 = |c: Complex<V>| Complex { re: c.im, im: V::splat(0.0).sub(c.re) };
    let w6 = |c: Complex<V>| Complex {
        re: c.im.sub(c.re).mul(r),
        im: V::splat(0.0).sub(c.re.add(c.im)).mul(r),
    };
    let column = |p: usize| dft4([x[p], x[p + 4], x[p + 8], x[p + 12]]);
    let [a0, a1, a2, a3] = column(0);
    let [b0, b1, b2, b3] = column(1);
    let [c0, c1, c2, c3] = column(2);
    let [d0, d1, d2, d3] = column(3);
    let r0 = dft4([a0, b0, c0, d0]);
    let r1 = dft4([a1, b1.rotate(W1), w2(c1), d1.rotate(W3)]);
    let r2 = dft4([a2, w2(b2), w4(c2), w6(d2)]);
    let r3 = dft4([a3, b3.rotate(W3), w6(c3), d3.rotate(W9)]);
    std::array::from_fn(|k| [r0, r1, r2, r3][k % 4][k / 4])
}
