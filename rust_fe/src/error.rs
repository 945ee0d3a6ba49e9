//! Everything that can go wrong, as one enum; `py` maps it to the classes of `asr.errors`.

use std::fmt;

/// Why the front end or the decoder refused its input.
///
/// The text is one line: which value, what was expected, what was found.
#[derive(Debug, Clone, PartialEq)]
pub enum Error {
    /// A value of the front-end recipe cannot be used.
    Config {
        /// Name of the recipe field.
        field: &'static str,
        /// What the field must satisfy.
        expected: String,
        /// What it was.
        found: String,
    },
    /// No backend of this name can run on this CPU.
    Backend {
        /// The name asked for.
        name: String,
        /// The names that would work, best first.
        available: Vec<&'static str>,
    },
    /// A sample is NaN or infinite.
    NonFiniteSample {
        /// Index of the first such sample.
        index: usize,
        /// Its value.
        value: f32,
    },
    /// An array of the front end has a shape that does not fit the call.
    Shape {
        /// Name of the array.
        name: &'static str,
        /// The shape or length it should have.
        expected: String,
        /// The shape or length it has.
        found: String,
    },
    /// The scores, or the numbers that go with them, do not fit together.
    Scores {
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// A score is NaN or infinite.
    NonFiniteScore {
        /// Row of the first such score.
        row: usize,
        /// Column of the first such score in that row.
        column: usize,
        /// Its value.
        value: f32,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config {
                field,
                expected,
                found,
            } => {
                write!(
                    f,
                    "front-end recipe: {field} must be {expected}, found {found}"
                )
            }
            Self::Backend { name, available } => write!(
                f,
                "backend {name:?} cannot run on this CPU, available: {}",
                available.join(", ")
            ),
            Self::NonFiniteSample { index, value } => {
                write!(
                    f,
                    "samples: expected finite values, found {value} at index {index}"
                )
            }
            Self::Shape {
                name,
                expected,
                found,
            } => {
                write!(f, "{name}: expected {expected}, found {found}")
            }
            Self::Scores { expected, found } => {
                write!(f, "CTC scores: expected {expected}, found {found}")
            }
            Self::NonFiniteScore { row, column, value } => write!(
                f,
                "CTC scores: expected finite values, found {value} at row {row}, column {column}"
            ),
        }
    }
}

impl std::error::Error for Error {}
