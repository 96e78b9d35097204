//! UDP messages that exceed the MTU: the kernel fragments them, and the loss of one fragment loses the message.

use wirecost_agent::protocol::{PathReply, PathRequest, Reply, Request};
use wirecost_model::end_window::End;
use wirecost_model::load::NamedLoad;

use super::session::{Session, host_of};
use crate::timeouts::PROMPT;

impl Session<'_> {
    /// Notes on the loads whose messages the kernel will fragment. Loads whose MTU cannot be looked up get no note.
    pub(super) fn fragments(&mut self) -> Vec<String> {
        let udp = self.asked.loads.iter();
        let udp: Vec<NamedLoad> = udp
            .filter(|named| named.load.workload.is_udp())
            .cloned()
            .collect();
        udp.iter()
            .flat_map(|named| {
                let client = host_of(named, End::Client);
                [
                    (client, named.load.request),
                    (1 - client, named.load.response),
                ]
                .map(|(host, bytes)| self.pieces(named, host, bytes))
            })
            .flatten()
            .collect()
    }

    fn pieces(&mut self, named: &NamedLoad, host: usize, bytes: u32) -> Option<String> {
        let (from, to) = (self.addresses[host], self.addresses[1 - host]);
        let request = PathRequest::Sends { from, to };
        let request = Request::Path(Box::new(request));
        let reply = self.links[host].call(&request, PROMPT, self.interrupt);
        let Ok(Reply::Path(reply)) = reply else {
            return None;
        };
        let PathReply::Sends(mtu) = *reply else {
            return None;
        };
        words(&named.name, (bytes, mtu), to.is_ipv4())
    }
}

fn words(name: &str, (bytes, mtu): (u32, u32), four: bool) -> Option<String> {
    const UDP: u32 = 8;
    // The IPv6 fragment header takes 8 bytes more (RFC 8200, section 4.5). All fragments but the last carry a multiple
    // of 8 bytes.
    let (header, fragment) = if four { (20, 20) } else { (40, 48) };
    if bytes + UDP + header <= mtu {
        return None;
    }
    let each = mtu.checked_sub(fragment)? / 8 * 8;
    let pieces = (bytes + UDP).div_ceil(each.max(8));
    Some(format!(
        "{name}: messages of {bytes} bytes do not fit packets of {mtu} bytes: each leaves in {pieces} fragments, and is lost \
         where one of them is; {} bytes fit",
        mtu.saturating_sub(UDP + header)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_does_not_fit_is_told_with_its_pieces() {
        assert_eq!(words("udp-stream", (1472, 1500), true), None);
        assert_eq!(words("udp-stream", (1452, 1500), false), None);
        let told = words("udp-stream", (20_000, 1500), true).expect("told");
        assert!(
            told.contains("14 fragments") && told.contains("1472 bytes fit"),
            "{told}"
        );
        let told = words("udp-stream", (1453, 1500), false).expect("told");
        assert!(
            told.contains("2 fragments") && told.contains("1452 bytes fit"),
            "{told}"
        );
    }
}
