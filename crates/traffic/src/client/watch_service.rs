//! Watched machines of a migration: the service that answers for them at their source, and their observer.

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, OnceLock, PoisonError};

use socket2::{Domain, Protocol, Socket, Type};
use wirecost_model::end_window::End;
use wirecost_sys::socket::bind_here;

use super::Client;
use crate::migration::observer::{Observer, ObserverThread};
use crate::migration::service::Service;

/// The service that answers for watched machines at their source, and their observer.
#[derive(Debug)]
pub(super) struct WatchService {
    _service: Service,
    /// UDP address of the service.
    here: SocketAddr,
    observer: Mutex<Option<Observer>>,
    watch: OnceLock<ObserverThread>,
}

impl Client {
    /// Starts the service, on a free UDP port of the local address of the load's connections.
    pub(super) fn serve_watched(&self) -> io::Result<WatchService> {
        let first = self.flows.first().ok_or(io::ErrorKind::NotFound)?;
        let own = first.socket.local_addr()?.as_socket();
        let own = own.ok_or(io::ErrorKind::AddrNotAvailable)?;
        let socket = Socket::new(Domain::for_address(own), Type::DGRAM, Some(Protocol::UDP))?;
        bind_here(&socket, SocketAddr::new(own.ip(), 0))?;
        let here = socket.local_addr()?.as_socket();
        Ok(WatchService {
            here: here.ok_or(io::ErrorKind::AddrNotAvailable)?,
            _service: Service::start(&self.engine.shared, End::Client, socket)?,
            observer: Mutex::default(),
            watch: OnceLock::new(),
        })
    }

    /// UDP address of the service that answers for watched machines; `None`: they are not watched. The observer needs
    /// an address of the same IP version.
    pub fn watched_at(&self) -> Option<SocketAddr> {
        Some(self.watched.as_ref()?.here)
    }

    /// Sets the observer of watched machines, which begins to ask with [`Self::start`]. Without watched machines it is
    /// dropped.
    pub fn observe(&self, observer: Observer) {
        if let Some(watched) = &self.watched {
            let mut kept = watched
                .observer
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *kept = Some(observer);
        }
    }

    /// Starts the observer, if one was set.
    pub(super) fn start_watch(&self) -> io::Result<()> {
        let Some(watched) = &self.watched else {
            return Ok(());
        };
        let mut observer = watched
            .observer
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let target = self.flows.first().and_then(|flow| flow.target.ip());
        if let (Some(observer), Some(target)) = (observer.take(), target) {
            let watch = observer.watch(&self.engine.shared, watched.here, target)?;
            let _ = watched.watch.set(watch);
        }
        Ok(())
    }
}
