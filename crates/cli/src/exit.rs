//! Exit status of a command as a number, which `std::process::ExitCode` does not give away.

/// Exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitCode(u8);

impl ExitCode {
    /// The command did what it should.
    pub const SUCCESS: ExitCode = ExitCode(0);
    /// The command failed.
    pub const FAILURE: ExitCode = ExitCode(1);

    /// The number that the system sees.
    pub fn number(self) -> u8 {
        self.0
    }
}

impl From<u8> for ExitCode {
    fn from(number: u8) -> ExitCode {
        ExitCode(number)
    }
}
