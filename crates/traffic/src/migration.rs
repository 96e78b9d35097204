//! Live migration by pre-copy: what both ends keep besides their connections.
//!
//! A machine is memory and a thread that writes to it ([`guest`]). Its source ([`source`]) sends all pages, then
//! those that were written to meanwhile, as the kernel tracks it, until what is left fits the bound of the downtime;
//! then the thread stops and the rest is sent. A page always goes over the same connection, so that of two contents
//! the later one arrives last. The destination ([`destination_machine`], [`receiver`]) writes each page to its place,
//! and confirms when it has everything. After the window both ends compare the memory.
//!
//! With post-copy the thread stops after the first round, and another one resumes at the destination ([`post_copy`]):
//! missing pages are fetched when they are touched, and pushed meanwhile ([`post_copy_sender`],
//! [`post_copy_receiver`]). After the window the source makes the same writes to its memory ([`handover`]), and then
//! both ends compare theirs.
//!
//! Virtual machines ([`qemu`]) are moved by QEMU itself; the modules here start, watch and verify them.

pub(crate) mod destination_machine;
pub(crate) mod guest;
pub(crate) mod handover;
pub(crate) mod liveness;
pub(crate) mod machine_gaps;
pub(crate) mod observer;
mod page_set;
pub(crate) mod pages;
pub(crate) mod post_copy;
pub(crate) mod post_copy_receiver;
pub(crate) mod post_copy_sender;
pub(crate) mod qemu;
pub(crate) mod receiver;
pub(crate) mod record;
mod search;
pub(crate) mod service;
pub(crate) mod source;
