//! The command line, read by hand: a parser would be the largest part of the program.

use std::path::PathBuf;

use asr_edge::error::{Error, Kind, Result};
use asr_edge::listen::Wanted;

/// What `--help` says.
pub(crate) const HELP: &str = "\
asr-edge: speech to text on a board

  asr-edge [OPTIONS] FILE... | -      transcribe WAV files or standard input
  asr-edge [OPTIONS] --self-test      checksums, and the bundle's own clip
  asr-edge [OPTIONS] --serve          stay, and answer: docs/edge.md
  asr-edge prepare --out DIR          write a bundle made ready for this CPU
  asr-edge --version

  --bundle DIR     the bundle (default: $ASR_BUNDLE, else /models)
  --json           one JSON object per file, as asr transcribe --json
  --timings        where the time went
  --repeat N       transcribe each file N times
  --raw RATE       samples without a header: 16 bits, little endian, one channel
  --language LANG  a hint (default: auto)
  --itn            digits and punctuation
  --threads N      of the network (default: the fast cores, at most 4)
  --socket PATH    serve: a Unix socket in the place of standard input and output
  --queue N        serve: requests that may wait (default: 4)
  --timeout S      serve: seconds without a byte after which a request is given up (default: 30)

Exit codes: 0 done, 2 usage, 3 bad audio, 4 bad bundle, 5 cannot read or write,
7 ONNX Runtime is missing, 12 another text, 141 the reader of our output has gone
";

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Help,
    Version,
    Transcribe,
    SelfTest,
    Serve,
    Prepare,
}

/// Everything that was said.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) task: Task,
    pub(crate) bundle: PathBuf,
    pub(crate) files: Vec<String>,
    pub(crate) json: bool,
    pub(crate) timings: bool,
    pub(crate) repeat: usize,
    pub(crate) raw_hz: Option<u32>,
    pub(crate) threads: Option<usize>,
    pub(crate) wanted: Wanted,
    pub(crate) socket: Option<PathBuf>,
    pub(crate) queue: usize,
    pub(crate) timeout_s: u64,
    pub(crate) out: Option<PathBuf>,
}

/// Read the words behind the program's name.
pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Options> {
    let bundle = std::env::var_os("ASR_BUNDLE").filter(|name| !name.is_empty());
    let mut found = Options {
        task: Task::Transcribe,
        bundle: bundle.map_or_else(|| PathBuf::from("/models"), PathBuf::from),
        files: Vec::new(),
        json: false,
        timings: false,
        repeat: 1,
        raw_hz: None,
        threads: None,
        wanted: Wanted::default(),
        socket: None,
        queue: 4,
        timeout_s: 30,
        out: None,
    };
    let mut words = words.peekable();
    if words.peek().is_some_and(|word| word == "prepare") {
        found.task = Task::Prepare;
        words.next();
    }
    let mut options = true;
    while let Some(word) = words.next() {
        if !options || word == "-" || !word.starts_with('-') {
            found.files.push(word);
            continue;
        }
        let (name, given) = match word.split_once('=') {
            Some((name, value)) => (name.to_string(), Some(value.to_string())),
            None => (word, None),
        };
        let mut value = || {
            given.clone().or_else(|| words.next()).ok_or_else(|| {
                Error::new(Kind::Usage, format!("{name}: expected a value, found none"))
            })
        };
        match name.as_str() {
            "--" => options = false,
            "-h" | "--help" => found.task = Task::Help,
            "--version" => found.task = Task::Version,
            "--self-test" => found.task = Task::SelfTest,
            "--serve" => found.task = Task::Serve,
            "--json" => found.json = true,
            "--timings" => found.timings = true,
            "--itn" => found.wanted.itn = true,
            "--bundle" => found.bundle = value()?.into(),
            "--out" => found.out = Some(value()?.into()),
            "--socket" => found.socket = Some(value()?.into()),
            "--language" => found.wanted.language = Some(value()?),
            "--repeat" => found.repeat = number(&name, &value()?, 1_000_000)?,
            "--raw" => found.raw_hz = Some(number(&name, &value()?, 384_000)? as u32),
            "--threads" => found.threads = Some(number(&name, &value()?, 1024)?),
            "--queue" => found.queue = number(&name, &value()?, 1024)?,
            "--timeout" => found.timeout_s = number(&name, &value()?, 86_400)? as u64,
            _ => {
                return Err(Error::new(
                    Kind::Usage,
                    format!("{name}: no such option; asr-edge --help lists them"),
                ));
            }
        }
    }
    check(&found)?;
    Ok(found)
}

fn check(found: &Options) -> Result<()> {
    let refuse = |what: &str| Err(Error::new(Kind::Usage, what));
    match found.task {
        Task::Transcribe if found.files.is_empty() => {
            refuse("expected a FILE, or - for standard input, found none; asr-edge --help")
        }
        Task::Prepare if found.out.is_none() => refuse("prepare: expected --out DIR, found none"),
        Task::Serve | Task::Prepare | Task::SelfTest if !found.files.is_empty() => {
            refuse("expected no FILE with --serve, --self-test or prepare")
        }
        _ => Ok(()),
    }
}

fn number(name: &str, word: &str, most: usize) -> Result<usize> {
    let found = word.parse().ok().filter(|n| (1..=most).contains(n));
    found.ok_or_else(|| {
        Error::new(
            Kind::Usage,
            format!("{name}: expected a whole number of 1 to {most}, found {word:?}"),
        )
    })
}
