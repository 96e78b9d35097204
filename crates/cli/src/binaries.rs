//! Programs for hosts of other architectures.

use std::path::PathBuf;

use clap::Args;
use wirecost_control::hosts::Binaries;

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AgentBinaries {
    /// A program of this version for hosts of another architecture (`uname -m`): aarch64=PATH; may be repeated
    /// [default: /usr/lib/wirecost/ARCH/wirecost]
    #[arg(long = "agent-binary", value_name = "ARCH=PATH", value_parser = binary)]
    others: Vec<(String, PathBuf)>,
}

impl AgentBinaries {
    pub(crate) fn binaries(&self) -> Binaries {
        Binaries {
            others: self.others.iter().cloned().collect(),
        }
    }
}

fn binary(text: &str) -> Result<(String, PathBuf), String> {
    let (machine, path) = text
        .split_once('=')
        .filter(|(machine, path)| !machine.is_empty() && !path.is_empty())
        .ok_or("name the architecture and the program: aarch64=/opt/wirecost-aarch64")?;
    let path = PathBuf::from(path);
    if !path.is_file() {
        return Err(format!("there is no file {}", path.display()));
    }
    Ok((machine.to_owned(), path))
}
