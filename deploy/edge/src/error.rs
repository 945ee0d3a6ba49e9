//! What can go wrong, as one line and an exit code: docs/exit-codes.md.

use std::fmt;
use std::path::Path;

/// Whose fault it is; the number is what the program returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Kind {
    /// An option or argument that cannot be.
    Usage = 2,
    /// Sound that cannot be read.
    Audio = 3,
    /// A bundle, network or recipe that is not what it should be.
    Model = 4,
    /// The system would not let us read or write.
    System = 5,
    /// ONNX Runtime's library is not there.
    Missing = 7,
    /// Our bug.
    Bug = 70,
}

/// One line: which file, what was expected, what was found, what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Whose fault it is.
    pub kind: Kind,
    /// The line.
    pub message: String,
}

/// What everything here returns.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of a kind.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// The system would not let us at a file.
    pub fn system(path: &Path, what: &str, error: &std::io::Error) -> Self {
        Self::new(
            Kind::System,
            format!("{}: cannot {what}: {error}", path.display()),
        )
    }

    /// The number that the program returns.
    #[must_use]
    pub fn code(&self) -> i32 {
        self.kind as i32
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One line, whatever a library had to say.
        for (i, word) in self.message.split_whitespace().enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            f.write_str(word)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

impl From<rust_fe::error::Error> for Error {
    fn from(error: rust_fe::error::Error) -> Self {
        Self::new(Kind::Model, error.to_string())
    }
}
