//! Generic netlink: whether the kernel has a family (Documentation/userspace-api/netlink/intro.rst).

use std::io;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_GENERIC};

// include/uapi/linux/genetlink.h
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const GENL_VERSION: u8 = 2;
// include/uapi/linux/netlink.h
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const HEADER_BYTES: usize = 16;
const ENOENT: i32 = 2;

/// Whether the kernel has a family of that name. Asked for one that is a module's, it loads it.
///
/// # Errors
/// As socket(2), and whatever else the kernel answers than that it has none.
pub fn has_family(name: &str) -> io::Result<bool> {
    let mut socket = Socket::new(NETLINK_GENERIC)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&request(name), 0)?;
    let mut buffer = Vec::with_capacity(8192);
    socket.recv(&mut buffer, 0)?;
    understand(&buffer)
}

fn request(name: &str) -> Vec<u8> {
    // Terminated, and padded to a multiple of four.
    let mut value = name.as_bytes().to_vec();
    value.push(0);
    let attribute = 4 + value.len();
    value.resize(value.len().next_multiple_of(4), 0);
    let length = HEADER_BYTES + 4 + 4 + value.len();
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((length as u32).to_ne_bytes());
    bytes.extend(GENL_ID_CTRL.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST.to_ne_bytes());
    bytes.extend(1_u32.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend([CTRL_CMD_GETFAMILY, GENL_VERSION, 0, 0]);
    bytes.extend((attribute as u16).to_ne_bytes());
    bytes.extend(CTRL_ATTR_FAMILY_NAME.to_ne_bytes());
    bytes.extend(value);
    bytes
}

fn understand(answer: &[u8]) -> io::Result<bool> {
    let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let (header, body) = answer
        .split_first_chunk::<HEADER_BYTES>()
        .ok_or_else(short)?;
    let kind = u16::from_ne_bytes([header[4], header[5]]);
    if kind != NLMSG_ERROR {
        return Ok(kind == GENL_ID_CTRL);
    }
    let code = body.first_chunk::<4>().ok_or_else(short)?;
    match -i32::from_ne_bytes(*code) {
        ENOENT => Ok(false),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_has_the_controller_and_none_has_ours() {
        assert!(has_family("nlctrl").expect("an answer"));
        assert!(!has_family("wirecost-none").expect("an answer"));
    }

    #[test]
    fn a_request_is_padded_and_says_its_length() {
        let bytes = request("abcd");
        assert_eq!(bytes.len(), 16 + 4 + 4 + 8);
        assert_eq!(bytes[0], 32);
        assert_eq!(bytes[20], 9);
        assert_eq!(&bytes[24..], b"abcd\0\0\0\0");
    }

    #[test]
    fn an_answer_that_is_cut_is_an_error() {
        assert!(understand(&[0; 7]).is_err());
        assert!(understand(&[20, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]).is_err());
    }
}
