// SPDX-License-Identifier: Apache-2.0
use std::fmt;

/// Why a call failed.
#[derive(Debug)]
pub enum Error {
    /// The server refused it. `kind` is what to decide by ("not_found", "conflict", "invalid", …), `message` one sentence
    /// that says what to do.
    Refused { status: u16, kind: String, message: String },
    /// The server could not be reached, or the connection broke.
    Connection(String),
    /// The answer was not what this client expects.
    Answer(String),
    /// The address of the server, or a value that goes into one, is not valid.
    Address(String),
}

impl Error {
    /// The kind of a refusal; empty for all others.
    pub fn kind(&self) -> &str {
        match self {
            Error::Refused { kind, .. } => kind,
            _ => "",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused { message, .. } => f.write_str(message),
            Error::Connection(why) => write!(f, "the server cannot be reached: {}", why),
            Error::Answer(why) => write!(f, "the answer cannot be read: {}", why),
            Error::Address(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}

impl From<hyper::Error> for Error {
    fn from(error: hyper::Error) -> Error {
        Error::Connection(error.to_string())
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Error {
        Error::Answer(error.to_string())
    }
}
