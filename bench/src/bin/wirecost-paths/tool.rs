//! The other tools: their command lines, and where their answers stand.

use std::io;
use std::process::Command;

/// Another tool that tells a path's MTU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tool {
    /// iputils' tracepath.
    Tracepath,
    /// CAIDA's scamper.
    Scamper,
}

impl Tool {
    pub(crate) const ALL: [Self; 2] = [Self::Tracepath, Self::Scamper];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tracepath => "tracepath",
            Self::Scamper => "scamper",
        }
    }

    const fn package(self) -> &'static str {
        match self {
            Self::Tracepath => "iputils-tracepath",
            Self::Scamper => "scamper",
        }
    }

    /// What is typed to learn the path MTU to an address.
    pub(crate) fn words(self, to: &str) -> Vec<String> {
        match self {
            Self::Tracepath => vec!["tracepath".into(), "-n".into(), to.into()],
            Self::Scamper => vec!["scamper".into(), "-I".into(), format!("trace -M {to}")],
        }
    }

    /// The path MTU in what it printed, bytes.
    pub(crate) fn answer(self, said: &str) -> Option<u32> {
        let before = match self {
            Self::Tracepath => "Resume: pmtu ",
            // Behind every hop from which on another size is sent: the last one reaches the end.
            Self::Scamper => "[mtu: ",
        };
        let rest = said.rsplit_once(before)?.1;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    }

    /// # Errors
    /// It is not installed.
    pub(crate) fn look_for(self) -> Result<(), String> {
        match Command::new(self.name()).arg("-V").output() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(format!(
                "there is no {}: install the package {}, or leave it out with --alone",
                self.name(),
                self.package()
            )),
            Err(error) => Err(format!("starting {}: {error}", self.name())),
            Ok(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_from_what_was_recorded() {
        let tracepath = include_str!("../../../fixtures/tracepath-20221126-black-hole.txt");
        assert_eq!(Tool::Tracepath.answer(tracepath), Some(9000));
        let scamper = include_str!("../../../fixtures/scamper-20211212-black-hole.txt");
        assert_eq!(Tool::Scamper.answer(scamper), Some(9000));
    }

    #[test]
    fn no_answer_is_none() {
        assert_eq!(Tool::Tracepath.answer(" 1:  no reply\n"), None);
        assert_eq!(
            Tool::Scamper.answer("traceroute from a to b\n 1  *\n"),
            None
        );
        assert_eq!(Tool::Scamper.answer("[mtu: ]"), None);
    }
}
