//! One network, built and measured.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use wirecost_faults::{Answer, Fault, Lab};

use crate::tool::Tool;

/// No tool takes as long, and one that does is ended.
const PATIENCE: Duration = Duration::from_mins(10);

/// One check.
pub(crate) struct Check {
    /// From the program's start to its end, seconds.
    pub(crate) seconds: f64,
    pub(crate) answer: Answer,
}

/// What a tool said of both directions, and how long each took it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolResult {
    pub(crate) mtu: Option<u32>,
    pub(crate) seconds: f64,
    pub(crate) exit: Option<i32>,
}

/// A network and everything that was measured on it.
pub(crate) struct Measured {
    pub(crate) fault: Fault,
    pub(crate) checks: Vec<Check>,
    /// By tool, each with its directions.
    pub(crate) others: BTreeMap<Tool, Vec<[ToolResult; 2]>>,
}

impl Measured {
    pub(crate) fn new(fault: Fault) -> Self {
        Self {
            fault,
            checks: Vec::new(),
            others: BTreeMap::new(),
        }
    }

    /// A round: some checks, then each tool in both directions.
    pub(crate) fn measure(
        &mut self,
        program: &Path,
        checks: u32,
        tools: &[Tool],
    ) -> Result<(), String> {
        let fault = &self.fault;
        let measured = Lab::with(fault, |_| -> Result<_, String> {
            let checks: Result<Vec<Check>, String> =
                (0..checks).map(|_| check(program, fault)).collect();
            let mut others = Vec::new();
            for tool in tools {
                others.push((*tool, both_ways(*tool, fault)?));
            }
            Ok((checks?, others))
        });
        let (checks, others) = measured.map_err(|error| error.to_string())??;
        self.checks.extend(checks);
        for (tool, results) in others {
            self.others.entry(tool).or_default().push(results);
        }
        Ok(())
    }

    /// Whether every check was right and they took no longer than allowed, by their median.
    pub(crate) fn is_good(&self, bound: f64) -> bool {
        self.wrong() == 0 && self.median() <= bound
    }

    /// Checks that did not say what the file expects. A file that is not named yet is as it should be while it is not.
    pub(crate) fn wrong(&self) -> usize {
        let is_right = |check: &&Check| {
            check.answer.differs_from(&self.fault).is_empty() != self.fault.not_yet.is_some()
        };
        self.checks.len() - self.checks.iter().filter(is_right).count()
    }

    pub(crate) fn median(&self) -> f64 {
        let seconds = self.checks.iter().map(|check| check.seconds);
        median(seconds.collect())
    }
}

fn check(program: &Path, fault: &Fault) -> Result<Check, String> {
    let began = Instant::now();
    let output = Command::new(program)
        .arg("check")
        .args(&fault.check)
        .arg("--json")
        .output()
        .map_err(|error| format!("starting {}: {error}", program.display()))?;
    let seconds = began.elapsed().as_secs_f64();
    let document = serde_json::from_slice(&output.stdout).map_err(|error| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        format!("{}: `wirecost check`: {error}: {stderr}", fault.name)
    })?;
    let answer = Answer::read(output.status.code(), &document)?;
    Ok(Check { seconds, answer })
}

/// The namespaces and addresses of a check's two hosts.
fn hosts(fault: &Fault) -> Result<[(&str, &str); 2], String> {
    let words = fault
        .check
        .iter()
        .filter_map(|word| word.strip_prefix("netns:"));
    let hosts: Vec<_> = words.filter_map(|word| word.split_once('=')).collect();
    <[_; 2]>::try_from(hosts).map_err(|_| format!("{}: two hosts with addresses", fault.name))
}

/// Both directions at the same time: these tools mostly wait.
fn both_ways(tool: Tool, fault: &Fault) -> Result<[ToolResult; 2], String> {
    let [a, b] = hosts(fault)?;
    // Started here, where the names of the namespaces are known, and waited for elsewhere.
    let started: Result<Vec<_>, String> = [(a.0, b.1), (b.0, a.1)]
        .into_iter()
        .map(|(netns, to)| {
            let mut command = Command::new("nsenter");
            command
                .arg(format!("--net=/run/netns/{netns}"))
                .args(tool.words(to))
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null());
            let began = Instant::now();
            let child = command
                .spawn()
                .map_err(|error| format!("starting nsenter {}: {error}", tool.name()))?;
            Ok(thread::spawn(move || wait(tool, child, began)))
        })
        .collect();
    let results: Result<Vec<ToolResult>, String> = started?
        .into_iter()
        .map(|waiting| waiting.join().map_err(|_| "a thread broke".to_owned())?)
        .collect();
    <[ToolResult; 2]>::try_from(results?).map_err(|_| "two directions".to_owned())
}

fn wait(tool: Tool, mut child: Child, began: Instant) -> Result<ToolResult, String> {
    let failed = |error: std::io::Error| format!("waiting for {}: {error}", tool.name());
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if began.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{} did not end within ten minutes", tool.name()));
        }
        thread::sleep(Duration::from_millis(10));
    };
    let seconds = began.elapsed().as_secs_f64();
    let mut text = String::new();
    // A few lines, which fit into the pipe.
    if let Some(mut output) = child.stdout.take() {
        output.read_to_string(&mut text).map_err(failed)?;
    }
    Ok(ToolResult {
        mtu: tool.answer(&text),
        seconds,
        exit: status.code(),
    })
}

/// The median; NaN of no numbers.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count => f64::midpoint(values[(count - 1) / 2], values[count / 2]),
    }
}
