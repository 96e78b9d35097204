//! `wirecost run --dry-run`: prints cells, order and expected time, from the plan alone.

mod adaptive;
mod document;
pub(crate) mod hosts;
mod page;
pub(crate) mod settings;

use std::path::Path;

use wirecost_control::experiment::Preview;

use crate::failure::CommandResult;
use crate::plan::Loaded;
use crate::screen;

pub(crate) fn print(
    loaded: &Loaded,
    preview: &Preview,
    out: Option<&Path>,
    json: bool,
) -> CommandResult {
    let document = document::document(loaded, preview, out);
    if json {
        screen::print_json(&document)
    } else {
        let page = page::page(&document, &loaded.experiment, screen::terminal().width);
        screen::print(&page)
    }
}
