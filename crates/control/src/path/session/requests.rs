//! Requests to both agents at the same time.

use std::time::Duration;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{PathReply, PathRequest, Reply, Request};

use super::Session;

impl Session<'_> {
    /// Sends one request to each host and waits for all answers.
    pub(super) fn ask(
        &mut self,
        requests: Vec<PathRequest>,
        within: Duration,
    ) -> Result<Vec<PathReply>, LinkError> {
        self.ask_some(requests.into_iter().map(Some).collect(), within)
    }

    /// [`Self::ask`] of the hosts that have a request; answers are in the order of the hosts.
    pub(super) fn ask_some(
        &mut self,
        requests: Vec<Option<PathRequest>>,
        within: Duration,
    ) -> Result<Vec<PathReply>, LinkError> {
        self.ask_each(requests, within)?.into_iter().collect()
    }

    /// [`Self::ask_some`] with an answer or error for each request. Every answer is read, also after an error, unless
    /// an interrupt ends the wait.
    pub(super) fn ask_each(
        &mut self,
        requests: Vec<Option<PathRequest>>,
        within: Duration,
    ) -> Result<Vec<Result<PathReply, LinkError>>, LinkError> {
        let mut asked = Vec::new();
        for (link, request) in self.links.iter_mut().zip(requests) {
            if let Some(request) = request {
                link.send(&Request::Path(Box::new(request)))?;
                asked.push(link);
            }
        }
        let mut replies = Vec::new();
        for link in asked {
            let reply = link.receive(within, self.interrupt);
            if matches!(reply, Err(LinkError::Interrupted)) {
                return Err(LinkError::Interrupted);
            }
            replies.push(match reply {
                Ok(Reply::Path(reply)) => Ok(*reply),
                Ok(_) => Err(link.unexpected_reply("Path")),
                Err(error) => Err(error),
            });
        }
        Ok(replies)
    }
}
