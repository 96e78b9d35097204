//! Geneve options: the table of those that the switch knows, and flows that add them to every packet (ovs-ofctl(8),
//! `add-tlv-map`; ovs-fields(7), `tun_metadata0`).

use std::fmt::Write as _;

use wirecost_model::plan::{Encapsulation, GeneveOptions};
use wirecost_wire::geneve::Options;

use crate::error::Error;

/// One option in the syntax of the switch's commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OptionMapping {
    /// Entry of the table: `{class=0x102,type=0x80,len=4}->tun_metadata0`.
    pub(crate) table: String,
    /// Action of a flow: `set_field:0x00010002->tun_metadata0`.
    pub(crate) action: String,
}

/// Mapping of an encapsulation's options; `None` where it has none.
///
/// # Errors
/// [`Error::Cannot`] where the switch cannot send them.
pub(crate) fn mapping(encapsulation: &Encapsulation) -> Result<Option<OptionMapping>, Error> {
    let asked = match encapsulation {
        Encapsulation::Geneve(geneve) if geneve.options != GeneveOptions::NONE => geneve.options,
        _ => return Ok(None),
    };
    let options = Options::of_plan(asked)
        .map_err(|error| Error::Cannot(format!("`options: {asked}`: {error}")))?;
    let mut all = options.iter();
    let (Some(option), None) = (all.next(), all.next()) else {
        return Err(not_once(asked));
    };
    if option.data.is_empty() {
        return Err(not_once(asked));
    }
    let mut value = String::from("0x");
    for byte in option.data {
        // Writing to a string does not fail.
        let _ = write!(value, "{byte:02x}");
    }
    Ok(Some(OptionMapping {
        table: format!(
            "{{class={:#x},type={:#x},len={}}}->tun_metadata0",
            option.class,
            option.kind,
            option.data.len()
        ),
        action: format!("set_field:{value}->tun_metadata0"),
    }))
}

fn not_once(asked: GeneveOptions) -> Error {
    Error::Cannot(format!(
        "Open vSwitch cannot send `options: {asked}`: an option of one type is in a packet once, and has 8 to 128 bytes"
    ))
}

#[cfg(test)]
mod tests {
    use wirecost_model::datapath::Datapath;
    use wirecost_model::plan::Geneve;

    use super::*;

    fn of(options: GeneveOptions) -> Result<Option<OptionMapping>, String> {
        let geneve = Geneve {
            options,
            ..Geneve::default()
        };
        mapping(&Encapsulation::Geneve(geneve)).map_err(|error| error.to_string())
    }

    #[test]
    fn ovns_option_is_set_with_its_class_type_and_value() {
        let mapping = of(GeneveOptions::Ovn).expect("known").expect("one");
        assert_eq!(
            mapping.table,
            "{class=0x102,type=0x80,len=4}->tun_metadata0"
        );
        assert_eq!(mapping.action, "set_field:0x00010002->tun_metadata0");
        assert_eq!(of(GeneveOptions::NONE), Ok(None));
    }

    #[test]
    fn the_sizes_that_can_be_sent_are_those_that_the_model_says() {
        for bytes in (0..=GeneveOptions::MOST_BYTES).step_by(4) {
            let options = GeneveOptions::Bytes(bytes);
            let by_model = Datapath::Ovs.cannot(&Encapsulation::Geneve(Geneve {
                options,
                ..Geneve::default()
            }));
            assert_eq!(of(options).is_ok(), by_model.is_none(), "{bytes}");
        }
    }
}
