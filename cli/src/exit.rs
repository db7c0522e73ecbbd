//! What the exit status says.

use std::process::ExitCode;

/// What a command came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All is well.
    Good,
    /// It could be looked at, and something is wrong with it.
    Bad,
}

impl Outcome {
    /// Good where `good` holds.
    pub fn of(good: bool) -> Self {
        if good { Self::Good } else { Self::Bad }
    }
}

/// The status of what could not be done; that of wrong arguments, too.
pub const UNUSABLE: u8 = 2;

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Good => Self::SUCCESS,
            Outcome::Bad => Self::FAILURE,
        }
    }
}

/// What `--help` says about it.
pub const HELP: &str = "\
Exit status:
  0  all is well
  1  something is wrong with what was looked at: a manifest is refused, a group is not in order
  2  it could not be looked at: wrong arguments, no such file, no answer from the API server";
