//! The header of a WAV file, and its samples as float32.

use std::io::Read;

use crate::error::{Error, Kind, Result};

/// Sizes from here on are what programs write that do not know the size: pipes.
const UNKNOWN: u32 = 0x7FFF_0000;
/// Longer chunks in front of the samples are no header.
const MAX_CHUNK: u32 = 1 << 24;

/// How one sample is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    U8,
    S16,
    S24,
    S32,
    F32,
    ALaw,
    MuLaw,
}

/// What the samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    encoding: Encoding,
    /// Samples per second.
    pub rate_hz: u32,
    /// Interleaved channels.
    pub channels: usize,
}

impl Format {
    /// 16 bits, little endian, one channel.
    #[must_use]
    pub fn pcm16(rate_hz: u32) -> Self {
        Self {
            encoding: Encoding::S16,
            rate_hz,
            channels: 1,
        }
    }

    /// Bytes of one sample of all channels.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        let width = match self.encoding {
            Encoding::U8 | Encoding::ALaw | Encoding::MuLaw => 1,
            Encoding::S16 => 2,
            Encoding::S24 => 3,
            Encoding::S32 | Encoding::F32 => 4,
        };
        width * self.channels
    }

    /// Whether values may be anything.
    #[must_use]
    pub fn is_float(&self) -> bool {
        self.encoding == Encoding::F32
    }

    /// Decode whole frames; channels are averaged.
    pub fn decode(&self, bytes: &[u8], samples: &mut Vec<f32>) {
        let width = self.frame_bytes() / self.channels;
        let channels = self.channels as f32;
        samples.reserve(bytes.len() / self.frame_bytes());
        for frame in bytes.chunks_exact(self.frame_bytes()) {
            let sum: f32 = frame.chunks_exact(width).map(|b| self.sample(b)).sum();
            samples.push(if self.channels == 1 {
                sum
            } else {
                sum / channels
            });
        }
    }

    fn sample(&self, b: &[u8]) -> f32 {
        match self.encoding {
            Encoding::U8 => (f32::from(b[0]) - 128.0) / 128.0,
            Encoding::S16 => f32::from(i16::from_le_bytes([b[0], b[1]])) / 32768.0,
            Encoding::S24 => i32::from_le_bytes([0, b[0], b[1], b[2]]) as f32 * (-31_f32).exp2(),
            Encoding::S32 => i32::from_le_bytes([b[0], b[1], b[2], b[3]]) as f32 * (-31_f32).exp2(),
            Encoding::F32 => f32::from_le_bytes([b[0], b[1], b[2], b[3]]),
            Encoding::ALaw => f32::from(a_law(b[0])) / 32768.0,
            Encoding::MuLaw => f32::from(mu_law(b[0])) / 32768.0,
        }
    }
}

/// ITU-T G.711, 13 bits left-justified in 16.
fn a_law(code: u8) -> i16 {
    let code = code ^ 0x55;
    let (exponent, mantissa) = (code >> 4 & 7, i16::from(code & 15));
    let size = match exponent {
        0 => mantissa * 16 + 8,
        _ => (mantissa * 16 + 264) << (exponent - 1),
    };
    if code & 0x80 == 0 { -size } else { size }
}

/// ITU-T G.711, 14 bits left-justified in 16.
fn mu_law(code: u8) -> i16 {
    let code = !code;
    let size = ((i16::from(code & 15) * 8 + 132) << (code >> 4 & 7)) - 132;
    if code & 0x80 == 0 { size } else { -size }
}

/// Read up to the first sample; the bytes of samples behind it, none where nobody knows.
///
/// # Errors
/// [`Kind::Audio`] where this is no WAV file of samples that are read here.
pub fn header(source: &mut dyn Read, name: &str) -> Result<(Format, Option<u64>)> {
    let refuse = |found: &str| {
        Err(Error::new(
            Kind::Audio,
            format!(
                "{name}: expected a WAV file of 8 to 32 bits, float, A-law or mu-law, found \
                 {found}; convert it, or name the rate of raw samples: --raw 16000"
            ),
        ))
    };
    let mut head = [0; 12];
    if source.read_exact(&mut head).is_err() {
        return refuse("fewer than 12 bytes");
    }
    if &head[..4] != b"RIFF" || &head[8..] != b"WAVE" {
        return refuse("something else");
    }
    let mut format = None;
    loop {
        let mut chunk = [0; 8];
        if source.read_exact(&mut chunk).is_err() {
            return refuse("no samples");
        }
        let size = u32::from_le_bytes([chunk[4], chunk[5], chunk[6], chunk[7]]);
        if &chunk[..4] == b"data" {
            let left = (size != 0 && size < UNKNOWN).then_some(u64::from(size));
            return match format {
                Some(format) => Ok((format, left)),
                None => refuse("no format in front of the samples"),
            };
        }
        if size > MAX_CHUNK {
            return refuse("a chunk without an end");
        }
        let mut body = vec![0; (size + size % 2) as usize];
        if source.read_exact(&mut body).is_err() {
            return refuse("a header that breaks off");
        }
        if &chunk[..4] == b"fmt " {
            format = Some(match parse(&body) {
                Some(format) => format,
                None => return refuse("another encoding"),
            });
        }
    }
}

fn parse(fields: &[u8]) -> Option<Format> {
    let word = |at: usize| Some(u16::from_le_bytes([*fields.get(at)?, *fields.get(at + 1)?]));
    let (mut tag, channels, bits) = (word(0)?, word(2)?, word(14)?);
    let rate_hz = u32::from(word(4)?) | u32::from(word(6)?) << 16;
    if tag == 0xFFFE {
        tag = word(24)?;
    }
    let encoding = match (tag, bits.div_ceil(8)) {
        (1, 1) => Encoding::U8,
        (1, 2) => Encoding::S16,
        (1, 3) => Encoding::S24,
        (1, 4) => Encoding::S32,
        (3, 4) => Encoding::F32,
        (6, 1) => Encoding::ALaw,
        (7, 1) => Encoding::MuLaw,
        _ => return None,
    };
    (1..=1024).contains(&channels).then_some(Format {
        encoding,
        rate_hz,
        channels: usize::from(channels),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(tag: u16, channels: u16, bits: u16, size: u32) -> Vec<u8> {
        let mut bytes = b"RIFF\0\0\0\0WAVEJUNK\x01\0\0\0xxfmt \x10\0\0\0".to_vec();
        bytes.extend(tag.to_le_bytes());
        bytes.extend(channels.to_le_bytes());
        bytes.extend(16000_u32.to_le_bytes());
        bytes.extend([0; 6]);
        bytes.extend(bits.to_le_bytes());
        bytes.extend(b"data");
        bytes.extend(size.to_le_bytes());
        bytes
    }

    #[test]
    fn headers_are_walked_and_unknown_sizes_run_to_the_end() {
        for (size, left) in [(8, Some(8)), (0, None), (u32::MAX, None)] {
            let (format, found) = header(&mut &file(1, 2, 16, size)[..], "x").unwrap();
            assert_eq!((4, 2, left), (format.frame_bytes(), format.channels, found));
        }
        for bytes in [file(17, 1, 4, 0), b"RIFFxxxxWAVE".to_vec(), b"ID3".to_vec()] {
            assert_eq!(Kind::Audio, header(&mut &bytes[..], "x").unwrap_err().kind);
        }
    }

    #[test]
    fn samples_of_every_encoding_have_full_scale_one() {
        let decode = |tag, bits, bytes: &[u8]| {
            let format = parse(&file(tag, 1, bits, 0)[30..46]).unwrap();
            let mut samples = Vec::new();
            format.decode(bytes, &mut samples);
            samples
        };
        assert_eq!([-1.0, 0.0], decode(1, 8, &[0, 128])[..]);
        assert_eq!([-1.0], decode(1, 24, &[0, 0, 0x80])[..]);
        assert_eq!([-1.0], decode(1, 32, &[0, 0, 0, 0x80])[..]);
        assert_eq!([0.25], decode(3, 32, &0.25_f32.to_le_bytes())[..]);
        assert_eq!(
            [-8.0 / 32768.0, 32256.0 / 32768.0],
            decode(6, 8, &[0x55, 0xAA])[..]
        );
        assert_eq!([0.0, 32124.0 / 32768.0], decode(7, 8, &[0xFF, 0x80])[..]);
    }

    #[test]
    fn channels_are_averaged() {
        let format = parse(&file(1, 2, 8, 0)[30..46]).unwrap();
        let mut samples = Vec::new();
        format.decode(&[0, 128, 128, 128], &mut samples);
        assert_eq!([-0.5, 0.0], samples[..]);
    }
}
