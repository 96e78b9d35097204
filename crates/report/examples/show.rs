//! Prints a record as the terminal would: `show RUN_DIR WIDTH [full|answer] [ascii]`.
use std::path::Path;
use wirecost_report::{Detail, RunResult, Terminal, terminal};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let result = RunResult::read(Path::new(&args[1])).expect("a record");
    let has = |word: &str| args.iter().any(|arg| arg == word);
    let detail = if has("full") {
        Detail::Full
    } else if has("answer") {
        Detail::Answer
    } else {
        Detail::Usual
    };
    let width = args[2].parse().expect("a width");
    if has("html") {
        print!(
            "{}",
            wirecost_report::html(&result.reading, &result.document).expect("a page")
        );
    } else {
        print!(
            "{}",
            terminal(
                &result.document,
                Terminal {
                    width,
                    ascii: has("ascii"),
                    detail,
                    ..Terminal::default()
                }
            )
        );
    }
}
