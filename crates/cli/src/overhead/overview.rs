//! Tables of all encapsulations, one table for each MTU that was given.

use comfy_table::CellAlignment;
use wirecost_model::units::format_rate;

use super::document::{Document, FullSizeFrame, OverheadEntry, Size};
use super::figures::count;
use super::page::{Column, Page};

/// Cell of the table where no MTU fits.
const NONE: &str = "-";

pub(super) fn text(document: &Document, all: &[OverheadEntry], width: usize) -> String {
    let mut page = Page::new(width);
    let sizes = all.first().map_or(0, |one| one.sizes.len());
    let mut left_out = Vec::new();
    for at in 0..sizes {
        page.paragraph(&heading(document, &all[0].sizes[at]), 0);
        page.gap();
        left_out = page.table(columns(document, all, at));
        page.gap();
    }
    page.paragraph(&legend(document, &left_out), 0);
    if all
        .iter()
        .flat_map(|one| &one.sizes)
        .any(|size| matches!(size, Size::Impossible { .. }))
    {
        page.paragraph(
            "- : impossible; `wirecost overhead ENCAPSULATION` with the same options says why.",
            0,
        );
    }
    if !left_out.is_empty() {
        page.paragraph(
            &format!("For a wider terminal: {}.", left_out.join(", ")),
            0,
        );
    }
    page.paragraph(
        "Part by part: `wirecost overhead vxlan`; stacks and options: `wirecost overhead --help`.",
        0,
    );
    page.finish()
}

fn heading(document: &Document, first: &Size) -> String {
    let mtu = match first {
        Size::Fits(fit) if document.given == "underlay" => fit.underlay_mtu,
        Size::Fits(fit) => fit.guest_mtu,
        Size::Impossible { .. } => 0,
    };
    let side = |side, ip, given: &str| {
        if given == document.given {
            format!("{side} MTU {mtu} ({ip})")
        } else {
            format!("{side} {ip}")
        }
    };
    let line = document.rate_bps.map_or(String::new(), |rate| {
        format!(", line of {}", format_rate(rate))
    });
    let text = format!(
        "{}, {}{line}",
        side("underlay", document.underlay_ip, "underlay"),
        side("guests", document.guest_ip, "guest")
    );
    text[..1].to_uppercase() + &text[1..]
}

fn columns(document: &Document, all: &[OverheadEntry], at: usize) -> Vec<Column> {
    let column = |head: &str, rank, align, cells| Column {
        head: head.into(),
        rank,
        align,
        cells,
    };
    let number = |head: &str, rank, figure: &dyn Fn(&FullSizeFrame) -> String| {
        let cells = all.iter().map(|one| match &one.sizes[at] {
            Size::Fits(fit) => figure(fit),
            Size::Impossible { .. } => NONE.into(),
        });
        column(head, rank, CellAlignment::Right, cells.collect())
    };
    let words = |head: &str, rank, word: &dyn Fn(&OverheadEntry) -> String| {
        column(
            head,
            rank,
            CellAlignment::Left,
            all.iter().map(word).collect(),
        )
    };
    let mut columns = vec![
        words("encapsulation", 0, &|one| one.name.clone()),
        number("over-\nhead", 0, &|fit| fit.overhead_bytes.to_string()),
    ];
    columns.push(if document.given == "underlay" {
        number("guest\nMTU", 0, &|fit| fit.guest_mtu.to_string())
    } else {
        number("underlay\nMTU", 0, &|fit| fit.underlay_mtu.to_string())
    });
    columns.push(number("on the\nline", 3, &|fit| fit.line_bytes.to_string()));
    columns.push(number("goodput\n%", 0, &|fit| {
        format!("{:.1}", fit.tcp_goodput_share * 100.0)
    }));
    if document.rate_bps.is_some() {
        columns.push(number("goodput\nGbit/s", 1, &|fit| {
            fit.tcp_goodput_bps
                .map_or(NONE.into(), |bps| format!("{:.2}", bps / 1e9))
        }));
        columns.push(number("frames/s", 2, &|fit| {
            fit.frames_per_s.map_or(NONE.into(), count)
        }));
    }
    columns.push(words("what it is", 4, &|one| one.description.clone()));
    columns
}

fn legend(document: &Document, left_out: &[String]) -> String {
    let meanings = [
        ("over- head", "overhead: bytes of the underlay's MTU"),
        ("guest MTU", "guest MTU: the largest guest packet that fits"),
        (
            "underlay MTU",
            "underlay MTU: the smallest that carries the guests' packets",
        ),
        (
            "on the line",
            "on the line: bytes of a full frame, preamble and gap included",
        ),
        (
            "goodput %",
            "goodput: TCP payload with timestamps, of the line's rate",
        ),
        ("frames/s", "frames/s: full-size frames"),
    ];
    let absent = |head: &str| {
        left_out.iter().any(|left_out| left_out == head)
            || (head == "guest MTU" && document.given == "guest")
            || (head == "underlay MTU" && document.given == "underlay")
            || (head == "frames/s" && document.rate_bps.is_none())
    };
    let present = meanings.iter().filter(|(head, _)| !absent(head));
    let meanings: Vec<&str> = present.map(|(_, meaning)| *meaning).collect();
    meanings.join("; ") + "."
}
