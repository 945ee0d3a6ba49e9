//! Power spectra of real signals, one signal per lane.
//!
//! A complex transform of half the length over (even, odd) samples, then the usual split. The
//! complex transform works in place, decimating in frequency by 16 as long as that divides, then
//! by 4 and 2; its result stays in digit-reversed order and `order` says where each bin lies.
//!
//! Own code because a crate transforms one signal at a time: realfft in double precision takes
//! 1.2 times as long for the transforms alone as the whole front end here (AVX-512,
//! `benches/modules.rs`). It stays as the reference of the test below.

use super::butterfly::{butterflies, radix16, radix16_pass};
use super::lanes::{Complex, Lanes, Rotation};

/// Of 256 numbers the first 13 rows of 16: 25 ms at 16 kHz leave the last three rows zero.
const SHORT: usize = 13 * 16;

/// Everything about a transform that depends only on its length.
#[derive(Debug)]
pub(super) struct FftPlan {
    /// Half the length of the real signal.
    half: usize,
    /// 1 if an unused place follows every 16: with 8 lanes, rows of 2048 bytes would compete for
    /// two sets of the first cache, which made the first pass a quarter slower.
    pad: usize,
    /// Numbers of the signal that are looked at; all others count as zero.
    used: usize,
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
    /// Plan for real signals of `len` samples, a power of two, at least 2, of which all from
    /// `filled` on are zero.
    pub(super) fn new(len: usize, filled: usize) -> Self {
        assert!(
            len.is_power_of_two() && len >= 2,
            "length must be a power of two, at least 2"
        );
        let half = len / 2;
        let mut passes = Vec::new();
        let mut size = half;
        while size > 1 {
            let radix = [16, 4, 2]
                .into_iter()
                .find(|&r| size.is_multiple_of(r))
                .unwrap_or(2);
            let stride = size / radix;
            let factors = |j| (1..radix).map(move |k| Rotation::new(j * k, size));
            passes.push(Pass {
                radix,
                stride,
                twiddles: (0..stride).flat_map(factors).collect(),
            });
            size = stride;
        }
        let position = |mut bin: usize| {
            passes.iter().fold(0, |at, pass| {
                let digit = bin % pass.radix;
                bin /= pass.radix;
                at + digit * pass.stride
            })
        };
        let pad = usize::from(half == 256);
        let used = if half == 256 && filled <= 2 * SHORT {
            SHORT
        } else {
            half
        };
        let order = (0..half).map(position).map(|n| n + n / 16 * pad).collect();
        let split = (0..=half / 2).map(|k| Rotation::new(k, len)).collect();
        Self {
            half,
            pad,
            used,
            passes,
            order,
            split,
        }
    }

    /// Bins of the power spectrum.
    pub(super) fn half(&self) -> usize {
        self.half
    }

    /// Where number `n` of the signal lies.
    #[inline(always)]
    pub(super) fn place(&self, n: usize) -> usize {
        n + n / 16 * self.pad
    }

    /// Numbers of the signal that [`FftPlan::power`] looks at, the zeros among them included.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Places that the signal takes.
    pub(super) fn places(&self) -> usize {
        self.place(self.half)
    }

    /// Power of bins 0 to half - 1, four times; `z` is the signal as (even, odd) pairs and is
    /// destroyed.
    #[inline(always)]
    pub(super) fn power<V: Lanes>(&self, z: &mut [Complex<V>], power: &mut [V]) {
        if let Ok(z) = <&mut [Complex<V>; 272]>::try_from(&mut *z) {
            // The length that matters here, written out so that no bound needs a check.
            let [first, _] = &self.passes[..] else {
                unreachable!("256 = 16 * 16")
            };
            if self.used == SHORT {
                radix16_pass::<V, true>(z, 16, 17, &first.twiddles);
            } else {
                radix16_pass::<V, false>(z, 16, 17, &first.twiddles);
            }
            for block in z.as_chunks_mut::<17>().0 {
                radix16::<V, false>(block, 0, 1, &[]);
            }
        } else {
            for pass in &self.passes {
                for block in z.chunks_exact_mut(pass.radix * pass.stride) {
                    match pass.radix {
                        16 => radix16_pass::<V, false>(
                            block,
                            pass.stride,
                            pass.stride,
                            &pass.twiddles,
                        ),
                        4 => butterflies::<V, 4>(block, pass.stride, &pass.twiddles),
                        _ => butterflies::<V, 2>(block, pass.stride, &pass.twiddles),
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
            let even = Complex {
                re: a.re.add(b.re),
                im: a.im.sub(b.im),
            };
            let odd = Complex {
                re: a.re.sub(b.re),
                im: a.im.add(b.im),
            };
            let turned = odd.rotate(self.split[k]);
            power[k] = even.sub_i(turned).norm_sqr();
            power[self.half - k] = even.add_i(turned).norm_sqr();
        }
    }
}

#[cfg(test)]
mod tests {
    use realfft::RealFftPlanner;

    use super::super::lanes::Lanes;
    use super::super::scalar::One;
    use super::{Complex, FftPlan};

    #[test]
    fn every_length_gives_the_power_that_the_crate_realfft_gives() {
        let lengths = (1..=14).map(|log| (1 << log, 1 << log));
        for (len, filled) in lengths.chain([(512, 400), (512, 416), (512, 417), (1024, 600)]) {
            let mut signal: Vec<f64> = (0..len).map(|i| ((i * i * 7 + i) as f64).sin()).collect();
            signal[filled..].fill(0.0);
            let reference = RealFftPlanner::new().plan_fft_forward(len);
            let mut spectrum = reference.make_output_vec();
            reference
                .process(&mut signal.clone(), &mut spectrum)
                .unwrap();

            let plan = FftPlan::new(len, filled);
            let zero = Complex {
                re: One::splat(0.0),
                im: One::splat(0.0),
            };
            let mut z = vec![zero; plan.places()];
            for (n, pair) in signal.chunks_exact(2).enumerate() {
                z[plan.place(n)] = Complex {
                    re: One::splat(pair[0]),
                    im: One::splat(pair[1]),
                };
            }
            let mut power = vec![One::splat(0.0); plan.half()];
            plan.power(&mut z, &mut power);

            let energy: f64 = signal.iter().map(|x| x * x).sum();
            for (k, power) in power.iter().enumerate() {
                let (expected, got) = (spectrum[k].norm_sqr(), power.to_lanes()[0] / 4.0);
                let error = (expected - got).abs();
                assert!(
                    error <= 1e-13 * energy,
                    "length {len}, bin {k}: {expected} {got}"
                );
            }
        }
    }
}
