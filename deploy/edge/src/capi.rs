//! The C library: `include/asr_edge.h` says what each function does.
//!
//! The only place with `unsafe` but for one line of `engine`: pointers come in from C here, and
//! nothing but checked values goes further.
#![allow(unsafe_code, reason = "the border to C")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::engine;
use crate::error::{Error, Kind, Result};
use crate::json;
use crate::listen::{Listener, Wanted};
use crate::sound::Reader;

/// What a handle points to.
#[derive(Default)]
pub struct Handle {
    listener: Option<Listener>,
    text: CString,
    json: CString,
    error: CString,
}

impl Handle {
    /// Do something; what it leaves is text and JSON, or an error and its code.
    fn call(&mut self, work: impl FnOnce(&mut Listener) -> Result<(String, String)>) -> c_int {
        let Some(listener) = &mut self.listener else {
            self.error = c_string("asr_edge: expected an open bundle; asr_edge_open failed");
            return Kind::Usage as c_int;
        };
        let done = guarded(|| work(listener));
        self.settle(done)
    }

    fn settle(&mut self, done: Result<(String, String)>) -> c_int {
        let (text, json, error, code) = match done {
            Ok((text, json)) => (text, json, String::new(), 0),
            Err(error) => (
                String::new(),
                String::new(),
                error.to_string(),
                error.code(),
            ),
        };
        self.text = c_string(&text);
        self.json = c_string(json.trim_end());
        self.error = c_string(&error);
        code
    }
}

/// A panic must not unwind into C.
fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let bug = |_| Err(Error::new(Kind::Bug, "internal error, please report it"));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(bug)
}

fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// Text from C.
///
/// # Safety
/// `text` is null or ends in a zero.
unsafe fn text_of<'a>(text: *const c_char, what: &str) -> Result<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    let found = unsafe { CStr::from_ptr(text) };
    let wrong = |_| Error::new(Kind::Usage, format!("{what}: expected UTF-8"));
    found.to_str().map(Some).map_err(wrong)
}

/// # Safety
/// As [`text_of`].
unsafe fn wanted(language: *const c_char, itn: c_int) -> Result<Wanted> {
    // SAFETY: as the caller promises.
    let language = unsafe { text_of(language, "language") }?;
    Ok(Wanted {
        language: language.map(Into::into),
        itn: itn != 0,
    })
}

fn hear(listener: &mut Listener, reader: &mut Reader, wanted: &Wanted) -> Result<(String, String)> {
    let (transcript, _) = listener.transcribe(reader, wanted)?;
    let json = json::line::<()>(&transcript, reader.name(), None, None)?;
    Ok((transcript.text, json))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn asr_edge_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// See the header.
///
/// # Safety
/// `bundle` ends in a zero; `edge` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asr_edge_open(
    bundle: *const c_char,
    threads: c_int,
    edge: *mut *mut Handle,
) -> c_int {
    if edge.is_null() {
        return Kind::Usage as c_int;
    }
    let mut handle = Box::<Handle>::default();
    let opened = guarded(|| {
        engine::telemetry_decided()?;
        // SAFETY: as the caller promises.
        let folder = unsafe { text_of(bundle, "bundle") }?;
        let folder = folder.ok_or_else(|| Error::new(Kind::Usage, "bundle: expected a folder"))?;
        let threads = match threads {
            0 => None,
            1..=1024 => Some(threads as usize),
            _ => {
                let message = format!("threads: expected 0 to 1024, found {threads}");
                return Err(Error::new(Kind::Usage, message));
            }
        };
        handle.listener = Some(Listener::load(Path::new(folder), threads)?);
        Ok((String::new(), String::new()))
    });
    let code = handle.settle(opened);
    // SAFETY: it is not null, and the caller lets us write.
    unsafe { *edge = Box::into_raw(handle) };
    code
}

/// See the header.
///
/// # Safety
/// `edge` is a handle that no other thread uses now; `samples` holds `count` values, or is null
/// where `count` is 0; `language` is null or ends in a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asr_edge_transcribe(
    edge: *mut Handle,
    samples: *const i16,
    count: usize,
    rate_hz: u32,
    language: *const c_char,
    itn: c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    let Some(handle) = (unsafe { edge.as_mut() }) else {
        return Kind::Usage as c_int;
    };
    handle.call(|listener| {
        // SAFETY: as the caller promises.
        let wanted = unsafe { wanted(language, itn) }?;
        let samples = match (samples.is_null(), count) {
            (_, 0) => &[],
            (true, _) => {
                return Err(Error::new(
                    Kind::Usage,
                    "samples: expected some, found NULL",
                ));
            }
            // SAFETY: not null, and the caller promises so many.
            (false, count) => unsafe { std::slice::from_raw_parts(samples, count) },
        };
        let mut reader = Reader::of_samples(samples, rate_hz, "samples")?;
        hear(listener, &mut reader, &wanted)
    })
}

/// See the header.
///
/// # Safety
/// `edge` is a handle that no other thread uses now; `path` ends in a zero; `language` is null or
/// ends in a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asr_edge_transcribe_file(
    edge: *mut Handle,
    path: *const c_char,
    language: *const c_char,
    itn: c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    let Some(handle) = (unsafe { edge.as_mut() }) else {
        return Kind::Usage as c_int;
    };
    handle.call(|listener| {
        // SAFETY: as the caller promises.
        let wanted = unsafe { wanted(language, itn) }?;
        // SAFETY: as the caller promises.
        let path = unsafe { text_of(path, "path") }?;
        let path = path.ok_or_else(|| Error::new(Kind::Usage, "path: expected a file"))?;
        hear(listener, &mut Reader::open(path, None)?, &wanted)
    })
}

/// See the header.
///
/// # Safety
/// `edge` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asr_edge_text(edge: *const Handle) -> *const c_char {
    // SAFETY: as the caller promises.
    unsafe { edge.as_ref() }.map_or(c"".as_ptr(), |handle| handle.text.as_ptr())
}

/// See the header.
///
/// # Safety
/// `edge` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asr_edge_json(edge: *const Handle) -> *const c_char {
    // SAFETY: as the caller promises.
    unsafe { edge.as_ref() }.map_or(c"".as_ptr(), |handle| handle.json.as_ptr())
}

/// See the header.
///
/// # Safety
/// `edge` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asr_edge_error(edge: *const Handle) -> *const c_char {
    // SAFETY: as the caller promises.
    unsafe { edge.as_ref() }.map_or(c"no handle".as_ptr(), |handle| handle.error.as_ptr())
}

/// See the header.
///
/// # Safety
/// `edge` is null, or a handle that nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asr_edge_close(edge: *mut Handle) {
    if !edge.is_null() {
        // SAFETY: `asr_edge_open` made it, and the caller gives it up.
        drop(unsafe { Box::from_raw(edge) });
    }
}
