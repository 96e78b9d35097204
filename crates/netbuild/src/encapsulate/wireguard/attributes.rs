//! Attribute numbers of WireGuard's generic netlink family (include/uapi/linux/wireguard.h).

/// `WGDEVICE_A_*`.
pub(super) mod device_attribute {
    pub(in super::super) const NAME: u16 = 2;
    pub(in super::super) const PRIVATE_KEY: u16 = 3;
    pub(in super::super) const PUBLIC_KEY: u16 = 4;
    pub(in super::super) const FLAGS: u16 = 5;
    pub(in super::super) const LISTEN_PORT: u16 = 6;
    pub(in super::super) const PEERS: u16 = 8;
    /// `WGDEVICE_F_REPLACE_PEERS`.
    pub(in super::super) const REPLACE_PEERS: u32 = 1;
}

/// `WGPEER_A_*`.
pub(super) mod peer_attribute {
    pub(in super::super) const PUBLIC_KEY: u16 = 1;
    pub(in super::super) const FLAGS: u16 = 3;
    pub(in super::super) const ENDPOINT: u16 = 4;
    pub(in super::super) const KEEPALIVE: u16 = 5;
    pub(in super::super) const LAST_HANDSHAKE: u16 = 6;
    pub(in super::super) const ALLOWED_IPS: u16 = 9;
    /// `WGPEER_F_REPLACE_ALLOWEDIPS`.
    pub(in super::super) const REPLACE_ALLOWED_IPS: u32 = 2;
    /// `WGPEER_F_UPDATE_ONLY`.
    pub(in super::super) const UPDATE_ONLY: u32 = 4;
}

/// `WGALLOWEDIP_A_*`.
pub(super) mod allowed_attribute {
    pub(in super::super) const FAMILY: u16 = 1;
    pub(in super::super) const ADDRESS: u16 = 2;
    pub(in super::super) const PREFIX: u16 = 3;
}
