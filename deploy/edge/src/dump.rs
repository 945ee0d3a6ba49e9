//! `ASR_DUMP`: each stage's result as `NN-stage.npz`, as `asr.observe` writes it.

use std::fs;
use std::path::{Path, PathBuf};

/// An array for a dump.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "each variant says it")]
pub enum Array {
    Float(Vec<f32>, Vec<usize>),
    Int(Vec<i32>),
    Whole(i64),
    Real(f64),
    Text(String),
}

/// The dump of one call.
#[derive(Debug)]
pub struct Dump {
    folder: PathBuf,
    seen: [usize; 16],
    trouble: Option<String>,
}

impl Dump {
    /// Where the variable says, in a folder with the clip's name; none where it says nothing.
    #[must_use]
    pub fn wanted(source: &str) -> Option<Self> {
        let folder = std::env::var_os("ASR_DUMP").filter(|name| !name.is_empty())?;
        let stem = Path::new(source).file_stem().unwrap_or_default();
        let stem = stem.to_string_lossy();
        let allowed = |c: char| c.is_alphanumeric() || "_.-".contains(c);
        let clean: String = stem
            .chars()
            .map(|c| if allowed(c) { c } else { '_' })
            .collect();
        let name = match clean.trim_matches('.') {
            "" => "clip",
            name => name,
        };
        Some(Self {
            folder: Path::new(&folder).join(name),
            seen: [0; 16],
            trouble: None,
        })
    }

    /// Write one stage's result; the second piece of long sound is `NN-stage.2.npz`.
    pub(crate) fn write(&mut self, number: usize, stage: &str, arrays: &[(&'static str, Array)]) {
        if self.trouble.is_some() {
            return;
        }
        self.seen[number] += 1;
        let piece = match self.seen[number] {
            1 => String::new(),
            count => format!(".{count}"),
        };
        let path = self.folder.join(format!("{number:02}-{stage}{piece}.npz"));
        let written =
            fs::create_dir_all(&self.folder).and_then(|()| fs::write(&path, archive(arrays)));
        if let Err(error) = written {
            self.trouble = Some(format!(
                "{}: dump stopped at stage {stage} ({error}); transcription goes on without it",
                self.folder.display()
            ));
        }
    }

    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }
}

/// One array as NumPy writes it.
fn npy(array: &Array) -> Vec<u8> {
    let (kind, shape, data): (String, &[usize], Vec<u8>) = match array {
        Array::Float(values, shape) => (
            "<f4".into(),
            shape,
            values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        ),
        Array::Int(values) => (
            "<i4".into(),
            &[values.len()],
            values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        ),
        Array::Whole(value) => ("<i8".into(), &[], value.to_le_bytes().into()),
        Array::Real(value) => ("<f8".into(), &[], value.to_le_bytes().into()),
        Array::Text(text) => (
            format!("<U{}", text.chars().count().max(1)),
            &[],
            text.chars()
                .flat_map(|c| u32::from(c).to_le_bytes())
                .collect(),
        ),
    };
    let shape: String = shape.iter().map(|n| format!("{n},")).collect();
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    out.extend(data);
    out
}

/// A zip archive of arrays, nothing compressed.
fn archive(arrays: &[(&'static str, Array)]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, array) in arrays {
        let (name, data) = (format!("{name}.npy"), npy(array));
        let size = (data.len() as u32).to_le_bytes();
        // What both headers share: version, flags, method, time, date, checksum, sizes, lengths.
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
        common.extend(crc32(&data).to_le_bytes());
        common.extend(size);
        common.extend(size);
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        directory.extend(b"PK\x01\x02\x14\0");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend((out.len() as u32).to_le_bytes());
        directory.extend(name.as_bytes());
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(name.as_bytes());
        out.extend(data);
    }
    let (start, count) = (out.len() as u32, (arrays.len() as u16).to_le_bytes());
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count);
    out.extend(count);
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    out
}

fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |s, _| {
            if s & 1 == 1 {
                s >> 1 ^ 0xEDB8_8320
            } else {
                s >> 1
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_is_the_one_of_zip() {
        assert_eq!(0xCBF4_3926, crc32(b"123456789"));
    }

    #[test]
    fn headers_are_whole_lines() {
        let bytes = npy(&Array::Float(vec![1.0, 2.0], vec![1, 2]));
        assert_eq!(0, (bytes.len() - 8) % 64);
        assert!(String::from_utf8_lossy(&bytes[..128]).contains("'shape': (1,2,)"));
    }
}
