//! How long a sample lasts, as the command line has it.

/// A measured window or its warm-up, seconds, 0.1 to 60.
///
/// # Errors
/// What to write instead.
pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=60.0).contains(&seconds) => Ok(seconds),
        _ => Err("write seconds between 0.1 and 60".into()),
    }
}
