//! How a table is printed.

/// A heading, and the head of a table whose first column is text.
pub(crate) fn head(title: &str, columns: &[&str]) {
    println!(
        "\n### {title}\n\n| {} |\n|---|{}",
        columns.join(" | "),
        "---:|".repeat(columns.len() - 1)
    );
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}
