//! The program: read the command line, do it, say how it ended.

mod args;
mod tell;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::time::Duration;

use asr_edge::bundle::Bundle;
use asr_edge::error::{Error, Kind, Result};
use asr_edge::listen::Listener;
use asr_edge::prepare;
use asr_edge::serve::{self, Manner};
use asr_edge::sound::Reader;

use args::{Options, Task};

/// The same sound gave another text.
const TEXT_CHANGED: u8 = 12;
/// The reader of our output has gone.
const NO_READER: u8 = 141;

fn main() -> ExitCode {
    asr_edge::engine::no_telemetry();
    let done = args::parse(
        std::env::args_os()
            .skip(1)
            .map(|word| word.to_string_lossy().into()),
    )
    .and_then(|options| run(&options));
    match done {
        Ok(code) => code.into(),
        Err(error) => {
            fail(&error);
            ExitCode::from(error.code() as u8)
        }
    }
}

fn fail(error: &Error) {
    // Nobody is left to be told where even this fails.
    let _ = writeln!(io::stderr(), "asr-edge: {error}");
}

fn run(options: &Options) -> Result<u8> {
    match options.task {
        Task::Help => Ok(say(args::HELP)),
        Task::Version => Ok(say(&format!(
            "asr-edge {} ({}, {})\n",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::ARCH,
            rust_fe::simd::Backend::best().name()
        ))),
        Task::Prepare => {
            let out = options.out.as_deref().unwrap_or(&options.bundle);
            prepare::prepare(&options.bundle, out)?;
            Ok(say(&format!("wrote {}\n", out.display())))
        }
        Task::SelfTest => self_test(options),
        Task::Serve => {
            let manner = Manner {
                queue: options.queue,
                timeout: Duration::from_secs(options.timeout_s),
            };
            let listener = Listener::load(&options.bundle, options.threads)?;
            serve::serve(listener, manner, options.socket.as_deref()).map(|()| 0)
        }
        Task::Transcribe => transcribe(options),
    }
}

/// Print; 141 where nobody reads any more.
fn say(text: &str) -> u8 {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => NO_READER,
        Err(_) => Kind::System as u8,
        Ok(()) => 0,
    }
}

/// Every file; a failure stops no other, the code is that of the first one that failed.
fn transcribe(options: &Options) -> Result<u8> {
    let mut listener = Listener::load(&options.bundle, options.threads)?;
    let mut code = 0;
    for (number, file) in options.files.iter().enumerate() {
        let told = hear(&mut listener, file, number == 0, options);
        let this = match told {
            Ok(text) => say(&text),
            Err(error) => {
                fail(&error);
                error.code() as u8
            }
        };
        if this == NO_READER {
            return Ok(this);
        }
        code = if code == 0 { this } else { code };
    }
    Ok(code)
}

/// One file, as often as asked: what is to be printed.
fn hear(listener: &mut Listener, file: &str, first: bool, options: &Options) -> Result<String> {
    let repeat = if file == "-" { 1 } else { options.repeat };
    let mut calls = Vec::with_capacity(repeat);
    let mut heard = None;
    for _ in 0..repeat {
        let mut reader = Reader::open(file, options.raw_hz)?;
        let (transcript, watch) = listener.transcribe(&mut reader, &options.wanted)?;
        if let Some(trouble) = watch.trouble() {
            fail(&Error::new(Kind::System, trouble));
        }
        calls.push((watch.ns, (transcript.wall_s * 1e9) as u64));
        heard = Some((transcript, reader.name().to_string()));
    }
    let Some((transcript, source)) = heard else {
        return Ok(String::new());
    };
    let timings = options
        .timings
        .then(|| tell::Timings::new(listener, &calls, transcript.audio_s, first));
    tell::answer(&transcript, &source, options.json, timings.as_ref())
}

/// Checksums, then the bundle's own clip: 12 for another text than where the bundle was made.
fn self_test(options: &Options) -> Result<u8> {
    Bundle::open(&options.bundle)?.verify()?;
    let mut listener = Listener::load(&options.bundle, options.threads)?;
    let test = listener.bundle.description.self_test.clone();
    let clip = listener.bundle.path(&test.file);
    let mut reader = Reader::open(&clip.to_string_lossy(), None)?;
    let (heard, _) = listener.transcribe(&mut reader, &options.wanted)?;
    if heard.spoken() == test.spoken && heard.text == test.text {
        return Ok(say(&format!(
            "{}: self-test passed: {:?}\n",
            listener.bundle.description.name, heard.text
        )));
    }
    let _ = writeln!(
        io::stderr(),
        "asr-edge: {}: expected {:?}, found {:?}; the runtime or the network is another one",
        clip.display(),
        test.spoken,
        heard.spoken()
    );
    Ok(TEXT_CHANGED)
}
