//! The text about one encapsulation, part by part.

use comfy_table::CellAlignment;
use wirecost_model::ip::IpVersion;
use wirecost_model::units::format_rate;
use wirecost_wire::overhead::min_mtu;

use super::document::{Document, FullSizeFrame, OverheadEntry, Size};
use super::figures::{count, percent, rate};
use super::page::{Column, Page};

/// Start of the second column in the lines of the result, columns.
const INDENT: usize = 14;

pub(super) fn text(document: &Document, one: &OverheadEntry, width: usize) -> String {
    let mut page = Page::new(width);
    page.paragraph(&format!("{}: {}", one.name, one.description), 2);
    for size in &one.sizes {
        if let Size::Fits(fit) = size {
            page.gap();
            parts(document, fit, &mut page);
            page.gap();
            results(document, fit, &mut page);
        }
    }
    needs(document, one, &mut page);
    for note in &one.notes {
        page.gap();
        page.paragraph(note, 0);
    }
    page.finish()
}

fn parts(document: &Document, fit: &FullSizeFrame, page: &mut Page) {
    page.paragraph(
        &format!(
            "Underlay MTU {} ({}), guest MTU {} ({}): the frame, outermost part first.",
            fit.underlay_mtu, document.underlay_ip, fit.guest_mtu, document.guest_ip
        ),
        0,
    );
    page.gap();
    let column = |head: &str, rank, align, cells| Column {
        head: head.into(),
        rank,
        align,
        cells,
    };
    let of_parts = |cell: &dyn Fn(&super::document::FramePart) -> String| -> Vec<String> {
        fit.parts.iter().map(cell).collect()
    };
    let mut bytes = of_parts(&|part| part.bytes.to_string());
    bytes.push(fit.line_bytes.to_string());
    let mut names = of_parts(&|part| format!("{}{}", "  ".repeat(part.depth), part.name));
    names.push("on the line".into());
    let mut sources = of_parts(&|part| part.source.into());
    sources.push(String::new());
    page.table(vec![
        column("bytes", 0, CellAlignment::Right, bytes),
        column("part", 0, CellAlignment::Left, names),
        column("defined in", 0, CellAlignment::Left, sources),
    ]);
}

fn results(document: &Document, fit: &FullSizeFrame, page: &mut Page) {
    let mut line = |name: &str, text: &str| {
        page.paragraph(&format!("{name:INDENT$}{text}"), INDENT);
    };
    let unused = match fit.unused_bytes {
        0 => String::new(),
        bytes => format!(", {bytes} unused"),
    };
    line(
        "overhead",
        &format!(
            "{} of {} bytes of the underlay's MTU ({}){unused}",
            fit.overhead_bytes,
            fit.underlay_mtu,
            percent(f64::from(fit.overhead_bytes) / f64::from(fit.underlay_mtu))
        ),
    );
    let ipv6 = min_mtu(IpVersion::Ipv6);
    let too_small = if fit.guest_mtu < ipv6 {
        format!(", too small for IPv6, which needs {ipv6} (RFC 8200)")
    } else {
        String::new()
    };
    line("guest MTU", &format!("{}{too_small}", fit.guest_mtu));
    line(
        "frame",
        &format!(
            "{} bytes from header to FCS, {} on the line",
            fit.frame_bytes, fit.line_bytes
        ),
    );
    let share = format!("{} of the line", percent(fit.tcp_goodput_share));
    let goodput = match fit.tcp_goodput_bps.zip(document.rate_bps) {
        Some((bps, line)) => format!("{} of {}, {share}", rate(bps), format_rate(line)),
        None => share,
    };
    line("TCP goodput", &format!("{goodput}, with timestamps"));
    if let Some((full, short)) = fit.frames_per_s.zip(fit.short.frames_per_s) {
        line(
            "frames",
            &format!(
                "{}/s full-size; {}/s with guest packets of {} bytes",
                count(full),
                count(short),
                fit.short.guest_bytes
            ),
        );
    }
}

/// The underlay MTUs that usual guest MTUs need, where underlay MTUs were given.
fn needs(document: &Document, one: &OverheadEntry, page: &mut Page) {
    let needs: Vec<String> = one
        .needs
        .iter()
        .map(|need| format!("{} for guest MTU {}", need.underlay_mtu, need.guest_mtu))
        .collect();
    if document.given == "underlay" && !needs.is_empty() {
        page.paragraph(
            &format!("{:INDENT$}underlay MTU {}", "needs", needs.join(", ")),
            INDENT,
        );
    }
}
