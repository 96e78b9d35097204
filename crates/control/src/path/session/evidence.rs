//! Evidence about a direction without answers: what arrived at the far end, a host's firewall rules, NAT.

use std::net::SocketAddr;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{PathDirection, PathReply, PathRequest, Request};
use wirecost_check::{DropRule, PathReport, ReachabilityHint};

use super::Session;
use crate::timeouts::PROMPT;

/// By direction: the translated source address of each flow, as seen at the far end; `None` without NAT.
pub(super) type TranslatedSources = [Option<Vec<SocketAddr>>; 2];

impl Session<'_> {
    /// Where a direction is dead: asks both hosts what arrived, and from which addresses.
    pub(super) fn arrivals(
        &mut self,
        ways: &[PathDirection; 2],
        paths: &mut [PathReport],
    ) -> Result<TranslatedSources, LinkError> {
        let mut mapped: TranslatedSources = [None, None];
        if !paths.iter().any(PathReport::is_dead) {
            return Ok(mapped);
        }
        let requests = vec![PathRequest::Arrivals, PathRequest::Arrivals];
        for (host, reply) in self.ask(requests, PROMPT)?.into_iter().enumerate() {
            let PathReply::Arrivals { probes, sources } = reply else {
                return Err(self.links[host].unexpected_reply("Arrivals"));
            };
            let index = 1 - host;
            paths[index].observations.arrived = probes;
            let from = ways[index].from.address;
            let translated = sources.iter().find(|source| source.ip() != from);
            // Only the reverse direction fails because of NAT: its sender does not know the translated address.
            if let (Some(source), true) = (translated, paths[host].is_dead()) {
                paths[index].mapped = Some(source.ip());
                mapped[index] = Some(sources);
            }
        }
        self.count_bad_checksums(paths)?;
        Ok(mapped)
    }

    /// Probes the direction towards a host behind NAT, through the mappings that the host's own flows created.
    pub(super) fn ask_back(
        &mut self,
        ways: &[PathDirection; 2],
        paths: &mut [PathReport],
        mapped: TranslatedSources,
    ) -> Result<(), LinkError> {
        for (index, sources) in mapped.into_iter().enumerate() {
            let Some(sources) = sources else { continue };
            let back = 1 - index;
            let secret = ways[index].secret;
            let answer = PathRequest::AnswerOnFlows { secret };
            let answer = Request::Path(Box::new(answer));
            self.links[index].done(&answer, PROMPT, self.interrupt)?;
            let limits = self.limits();
            let mut orders = vec![None, None];
            orders[back] = Some(PathRequest::SurveyMapped {
                way: PathDirection {
                    port: ways[index].port,
                    ..ways[back].clone()
                },
                to: sources,
                limits,
            });
            let replies = self.ask_some(orders, limits.longest() + PROMPT)?;
            for reply in replies {
                let PathReply::Path(mut report) = reply else {
                    return Err(self.links[back].unexpected_reply("SurveyMapped"));
                };
                // Loss is not counted through a mapping.
                (report.awaited, report.missing) = (0, 0);
                if !report.is_dead() {
                    paths[back] = report;
                }
            }
        }
        Ok(())
    }

    /// Reads the hosts' firewall rules where those may explain a fault.
    pub(super) fn rules(&mut self, paths: &[PathReport]) -> Result<[Vec<DropRule>; 2], LinkError> {
        let unheard = |path: &PathReport| path.observations.too_big.is_some();
        // Wrong checksums already explain the fault.
        let spoiled = paths.iter().any(|path| path.bad_checksums > 1);
        let filtered = |path: &PathReport| {
            path.is_dead()
                && !spoiled
                && !matches!(
                    path.hint,
                    Some(ReachabilityHint::NoRoute | ReachabilityHint::NoNeighbour(_))
                )
        };
        if !paths.iter().any(|path| unheard(path) || filtered(path)) {
            return Ok([Vec::new(), Vec::new()]);
        }
        let requests = vec![PathRequest::Rules, PathRequest::Rules];
        let mut all = [Vec::new(), Vec::new()];
        for (host, reply) in self.ask(requests, PROMPT)?.into_iter().enumerate() {
            let PathReply::Rules(rules) = reply else {
                return Err(self.links[host].unexpected_reply("Rules"));
            };
            all[host] = rules;
        }
        Ok(all)
    }
}
