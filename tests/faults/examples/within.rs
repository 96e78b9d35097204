//! Builds the network of a file and runs a command in it, for whoever writes one:
//! `cargo run -p wirecost-faults --example within -- tests/faults/catalogue/switch-8950.yaml sh`.

use std::path::Path;
use std::process::{Command, ExitCode};

use wirecost_faults::{Lab, read};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, program, arguments @ ..] = &words[..] else {
        eprintln!("name a file of the catalogue, and a command with its arguments");
        return ExitCode::from(2);
    };
    let built = read(Path::new(file))
        .map_err(|error| error.to_string())
        .and_then(|fault| {
            let run = |_: &Lab| Command::new(program).args(arguments).status();
            Lab::with(&fault, run).map_err(|error| error.to_string())
        });
    match built {
        Ok(Ok(status)) => ExitCode::from(status.code().map_or(1, |code| code as u8)),
        Ok(Err(error)) => {
            eprintln!("starting {program}: {error}");
            ExitCode::from(3)
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(3)
        }
    }
}
