//! Signals that ask for the end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// A flag that SIGINT, SIGTERM and SIGHUP set; where it is set already, they end the program with exit code `code`.
///
/// # Errors
/// The kernel refuses to have signals handled.
pub fn register(code: u8) -> io::Result<Arc<AtomicBool>> {
    let interrupt = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register_conditional_shutdown(signal, i32::from(code), interrupt.clone())?;
        flag::register(signal, interrupt.clone())?;
    }
    Ok(interrupt)
}
