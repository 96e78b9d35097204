//! A headless Chromium, told what to do over pipes in the DevTools protocol, and what it says of a
//! page: its console, its requests, what a script of the test reads off it. It ends with its test.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{MachineLock, PATIENCE, lock_shared, skip, succeeds};

/// No picture of a graphics card, no network of its own accord.
const OPTIONS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--remote-debugging-pipe",
];

/// Whether there is a Chromium; where not, says so.
pub(crate) fn chromium_is_there() -> bool {
    succeeds(Command::new("chromium").arg("--version"))
        || skip("there is no chromium (Debian's package `chromium`; `make test` installs it)")
}

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    /// What it said unasked.
    events: VecDeque<Value>,
    asked: u64,
    session: Option<String>,
    profile: TempDir,
    _lock: MachineLock,
}

/// What a page did while it was opened and used.
#[derive(Debug, Default)]
pub(crate) struct PageEvents {
    /// Errors and warnings of the console, violated policies, exceptions.
    pub(crate) console: Vec<String>,
    /// What it asked for, the page itself included.
    pub(crate) requests: Vec<String>,
}

impl Browser {
    /// Starts one with a new, empty profile.
    pub(crate) fn start() -> Self {
        let guard = lock_shared();
        let profile = tempfile::tempdir().expect("a profile");
        let home = profile.path();
        // The protocol is spoken over descriptors 3 and 4.
        let script = "exec 3<&0 4>&1 </dev/null >/dev/null 2>\"$1\"; shift; exec chromium \"$@\"";
        let mut child = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(home.join("log"))
            .args(OPTIONS)
            .arg(format!("--user-data-dir={}", home.join("data").display()))
            .arg("about:blank")
            .env("HOME", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let to = child.stdin.take();
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let (send, from) = channel();
        // Ends when the browser does, or when nobody listens any more.
        thread::spawn(move || {
            let messages = out.split(0).map_while(Result::ok);
            let values = messages.filter_map(|bytes| serde_json::from_slice(&bytes).ok());
            for value in values {
                if send.send(value).is_err() {
                    break;
                }
            }
        });
        let mut browser = Self {
            child,
            to,
            from,
            events: VecDeque::new(),
            asked: 0,
            session: None,
            profile,
            _lock: guard,
        };
        let target = browser.ask("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.ask("Target.attachToTarget", &attach);
        browser.session = attached["sessionId"].as_str().map(Into::into);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.ask(&format!("{domain}.enable"), &json!({}));
        }
        browser
    }

    /// Asks for something and waits for the answer.
    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.asked += 1;
        let mut message = json!({"id": self.asked, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        let to = self.to.as_mut().expect("an open pipe");
        to.write_all(&bytes)
            .unwrap_or_else(|error| panic!("{method}: {error}"));
        let asked = self.asked;
        let answer = self.hear(method, |value| value["id"] == asked);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Waits for what is wanted; what comes before it is kept.
    #[track_caller]
    fn hear(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.from.recv_timeout(left) {
                Ok(value) if wanted(&value) => return value,
                Ok(value) => self.events.push_back(value),
                Err(error) => panic!("waiting for {what}: {error}; chromium said: {}", self.log()),
            }
        }
    }

    /// What it wrote about itself.
    fn log(&self) -> String {
        let mut text = String::new();
        if let Ok(mut file) = File::open(self.profile.path().join("log")) {
            let _ = file.read_to_string(&mut text);
        }
        text
    }

    /// Opens a file, as a window of this width shows it, light or dark, and waits until it is there.
    pub(crate) fn open(&mut self, file: &std::path::Path, width: u32, scheme: &str) {
        let metrics =
            json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600});
        self.ask("Emulation.setDeviceMetricsOverride", &metrics);
        let feature = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.ask("Emulation.setEmulatedMedia", &feature);
        self.events.clear();
        let url = format!("file://{}", file.display());
        let navigated = self.ask("Page.navigate", &json!({"url": url}));
        assert!(navigated.get("errorText").is_none(), "{navigated}");
        let loaded = |value: &Value| value["method"] == "Page.loadEventFired";
        if !self.events.iter().any(loaded) {
            let event = self.hear("the page to load", loaded);
            self.events.push_back(event);
        }
    }

    /// The value of an expression on the page, after the next frame was drawn.
    #[track_caller]
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let question =
            json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.ask("Runtime.evaluate", &question);
        assert!(answer.get("exceptionDetails").is_none(), "{answer}");
        answer["result"]["value"].clone()
    }

    /// What the page did since it was opened.
    pub(crate) fn events(&mut self) -> PageEvents {
        // Whatever was said before this answer is here with it.
        self.ask("Runtime.evaluate", &json!({"expression": "0"}));
        let mut events = PageEvents::default();
        for event in &self.events {
            let parameters = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded" => {
                    events.console.push(parameters.to_string());
                }
                "Network.requestWillBeSent" => {
                    let url = parameters["request"]["url"].as_str();
                    events.requests.push(url.unwrap_or_default().into());
                }
                _ => {}
            }
        }
        events
    }

    /// Moves the pointer to the middle of the first element that fits, after it was scrolled to.
    pub(crate) fn point_at(&mut self, selector: &str) {
        self.mouse("mouseMoved", selector);
    }

    /// Clicks on it.
    pub(crate) fn click(&mut self, selector: &str) {
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            self.mouse(kind, selector);
        }
    }

    fn mouse(&mut self, kind: &str, selector: &str) {
        let place = self.evaluate(&format!(
            "(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView({{block: 'center', inline: 'center'}}); \
             const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        ));
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        let event = json!({"type": kind, "x": place[0], "y": place[1], "button": button, "clickCount": u8::from(button == "left")});
        self.ask("Input.dispatchMouseEvent", &event);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its helpers end when it does.
        drop(self.to.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
