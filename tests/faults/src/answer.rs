//! What a check said, and where that is not what a file expects.

use serde::Deserialize;
use serde_json::Value;

use crate::fault::{ExpectedFinding, ExpectedPath, Fault};

/// What a check said, as far as it is compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The program's exit code; `None`: a signal ended it.
    pub exit: Option<i32>,
    /// Each direction.
    pub paths: Vec<Path>,
    /// The worst first.
    pub findings: Vec<Finding>,
    /// How long it took by its own clock, seconds.
    pub seconds: f64,
}

/// One direction.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Path {
    /// The sending host.
    pub from: String,
    /// The receiving one.
    pub to: String,
    /// What the narrowest flow carries, bytes.
    pub mtu: Option<u32>,
    /// Why it carries no more.
    pub kind: String,
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Finding {
    /// As docs/check.md has it.
    pub id: String,
    /// `netns:a`, or `netns:a (x)` where it is about namespace x, which a's agent found.
    pub host: String,
    /// The device.
    pub device: Option<String>,
    /// What shows it.
    pub evidence: String,
    /// What to type.
    pub fix: Vec<String>,
}

#[derive(Deserialize)]
struct Document {
    directions: Vec<Path>,
    findings: Vec<Finding>,
    seconds: f64,
}

impl Answer {
    /// From the program's exit code and its JSON document.
    ///
    /// # Errors
    /// Where the document is not one of a check.
    pub fn read(exit: Option<i32>, document: &Value) -> Result<Self, String> {
        let document: Document = Document::deserialize(document)
            .map_err(|error| format!("this is no document of a check: {error}: {document}"))?;
        Ok(Self {
            exit,
            paths: document.directions,
            findings: document.findings,
            seconds: document.seconds,
        })
    }

    /// Every difference from what a file expects, in words; none where it is as it should be.
    pub fn differs_from(&self, fault: &Fault) -> Vec<String> {
        let expect = &fault.expect;
        let mut differences = Vec::new();
        if self.exit != Some(expect.exit) {
            differences.push(format!("exit code {:?}, not {}", self.exit, expect.exit));
        }
        for path in &expect.paths {
            self.path(path, &mut differences);
        }
        if self.paths.len() != expect.paths.len() {
            let (told, wanted) = (self.paths.len(), expect.paths.len());
            differences.push(format!("{told} directions, not {wanted}"));
        }
        let mut left: Vec<&Finding> = self.findings.iter().collect();
        for wanted in &expect.findings {
            match left.iter().position(|finding| finding.is(wanted)) {
                Some(at) => {
                    left.remove(at);
                }
                None => differences.push(format!("not found: {}", words(wanted))),
            }
        }
        for finding in left {
            if !expect.by_chance.iter().any(|known| finding.is(known)) {
                let Finding { id, host, .. } = finding;
                let device = finding.device.as_deref().unwrap_or("-");
                let evidence = &finding.evidence;
                differences.push(format!(
                    "found and not there: {id} {host} {device}: {evidence}"
                ));
            }
        }
        differences
    }

    fn path(&self, wanted: &ExpectedPath, differences: &mut Vec<String>) {
        let ExpectedPath {
            from,
            to,
            mtu,
            kind,
        } = wanted;
        let told = self
            .paths
            .iter()
            .find(|path| name(&path.from) == from && name(&path.to) == to);
        match told {
            None => differences.push(format!("nothing about {from} to {to}")),
            Some(path) if path.mtu != *mtu || path.kind != *kind => differences.push(format!(
                "{from} to {to}: {}, {}; not {}, {kind}",
                bytes(path.mtu),
                path.kind,
                bytes(*mtu)
            )),
            Some(_) => {}
        }
    }
}

/// A host's name as files have it.
fn name(host: &str) -> &str {
    host.strip_prefix("netns:").unwrap_or(host)
}

fn bytes(mtu: Option<u32>) -> String {
    mtu.map_or_else(|| "nothing passes".to_owned(), |mtu| format!("{mtu} pass"))
}

fn words(finding: &ExpectedFinding) -> String {
    let device = finding.device.as_deref().unwrap_or("-");
    format!("{} {} {device}", finding.id, finding.at)
}

impl Finding {
    /// The namespace that it is about.
    fn at(&self) -> &str {
        match self.host.split_once(" (") {
            Some((_, label)) => label.trim_end_matches(')'),
            None => name(&self.host),
        }
    }

    fn is(&self, wanted: &ExpectedFinding) -> bool {
        self.id == wanted.id && self.at() == wanted.at && self.device == wanted.device
    }
}

#[cfg(test)]
mod tests;
