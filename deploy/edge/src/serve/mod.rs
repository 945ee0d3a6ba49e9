//! The resident process: requests in, one line of JSON per answer out (docs/edge.md).
//!
//! A thread per connection reads requests and cuts streams; one worker holds the network. Between
//! them is a queue with so many places; whoever finds it full is told so at once.

mod connection;
mod request;
mod worker;

use std::io::{self, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use ort::session::Session;

use crate::bundle::DETECTOR;
use crate::error::{Error, Kind, Result};
use crate::listen::Listener;
use crate::split::{Detector, SILERO_HZ, load_silero};
use connection::{Connection, Output};
use worker::Job;

/// Connections beyond these are told `busy` and closed.
const MOST_CONNECTIONS: usize = 32;

/// How the process is to behave.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// Requests that may wait.
    pub queue: usize,
    /// A request that stops in its middle, waits, or whose answer nobody takes, is given up then.
    pub timeout: Duration,
}

/// What every connection knows.
pub(crate) struct Shared {
    jobs: SyncSender<Job>,
    manner: Manner,
    rate_hz: u32,
    piece_s: f64,
    silero: OnceLock<Option<Arc<Mutex<Session>>>>,
    silero_path: Option<std::path::PathBuf>,
}

impl Shared {
    /// For one stream; the network is loaded when the first one comes.
    fn detector(&self) -> Detector<'static> {
        let load = || {
            let path = self.silero_path.as_ref()?;
            load_silero(path).ok().map(|s| Arc::new(Mutex::new(s)))
        };
        match self.silero.get_or_init(load) {
            Some(session) => Detector::live(Arc::clone(session)),
            None => Detector::energy(self.rate_hz),
        }
    }
}

/// Answer requests from standard input until it ends, or from a socket for ever.
///
/// # Errors
/// [`Kind::System`] if the socket cannot be made.
pub fn serve(listener: Listener, manner: Manner, socket: Option<&Path>) -> Result<()> {
    let (jobs, work) = sync_channel(manner.queue);
    let has_silero = listener.bundle.has(DETECTOR) && listener.rate_hz() == SILERO_HZ;
    let shared = Arc::new(Shared {
        jobs,
        manner,
        rate_hz: listener.rate_hz(),
        piece_s: listener.bundle.description.piece_s,
        silero: OnceLock::new(),
        silero_path: has_silero.then(|| listener.bundle.path(DETECTOR)),
    });
    let door = socket.map(bind).transpose()?;
    let worker = thread::spawn(move || worker::run(listener, &work, manner.timeout));
    match door {
        None => {
            let output: Output = Arc::new(Mutex::new(Box::new(io::stdout())));
            let input = BufReader::with_capacity(1 << 16, io::stdin());
            Connection::new(shared, input, output).run();
        }
        Some(door) => accept(&door, &shared),
    }
    // The last sender has gone; the worker answers what still waits.
    worker
        .join()
        .map_err(|_| Error::new(Kind::System, "the worker ended in a panic"))
}

/// A socket that only we answer; one that was left behind is replaced.
fn bind(path: &Path) -> Result<UnixListener> {
    if UnixStream::connect(path).is_ok() {
        return Err(Error::new(
            Kind::System,
            format!(
                "{}: expected a free socket, found one that is answered",
                path.display()
            ),
        ));
    }
    if std::fs::symlink_metadata(path).is_ok_and(|m| {
        use std::os::unix::fs::FileTypeExt;
        m.file_type().is_socket()
    }) {
        // Nobody answers: its process has ended.
        let _ = std::fs::remove_file(path);
    }
    UnixListener::bind(path).map_err(|error| Error::system(path, "make the socket", &error))
}

fn accept(door: &UnixListener, shared: &Arc<Shared>) {
    let open = Arc::new(AtomicUsize::new(0));
    for stream in door.incoming() {
        let Ok(stream) = stream else {
            thread::sleep(Duration::from_millis(50)); // out of descriptors, for now
            continue;
        };
        let place = Place::take(&open);
        if open.load(Ordering::SeqCst) > MOST_CONNECTIONS {
            let _ = (&stream).write_all(request::busy(None).as_bytes());
            continue;
        }
        let shared = Arc::clone(shared);
        // Without a thread to spare the connection is closed, and its place is free again.
        let _ = thread::Builder::new().stack_size(1 << 19).spawn(move || {
            converse(shared, stream);
            drop(place);
        });
    }
}

/// A connection's place, free again however the connection ends.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(open))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn converse(shared: Arc<Shared>, stream: UnixStream) {
    let timeout = Some(shared.manner.timeout);
    let _ = stream.set_read_timeout(timeout);
    let _ = stream.set_write_timeout(timeout);
    if let Ok(writer) = stream.try_clone() {
        let output: Output = Arc::new(Mutex::new(Box::new(writer)));
        let input = BufReader::with_capacity(1 << 16, stream);
        Connection::new(shared, input, output).run();
    }
}

/// Whether a read gave up because nothing came.
fn timed_out(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}
