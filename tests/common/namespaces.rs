//! Named namespaces that go with the test, however it ends.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use super::{run, succeeds};

/// Named network namespaces. A child waits for the end of what this process holds of a pipe and removes them then: so
/// they go when this is dropped, when the test process is killed, and when a terminal interrupts its whole group.
#[derive(Debug)]
pub(crate) struct Namespaces {
    warden: Child,
    names: Vec<String>,
}

impl Namespaces {
    /// Makes them.
    #[track_caller]
    pub(crate) fn new(names: &[&str]) -> Self {
        // By the pipe and not by its arguments, by which tests look for what is left.
        let remove = "trap '' INT TERM HUP; while read -r name; do all=\"$all $name\"; done; \
                      for name in $all; do ip netns del \"$name\"; done";
        let mut warden = Command::new("sh")
            .args(["-c", remove])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh");
        let pipe = warden.stdin.as_mut().expect("a pipe");
        writeln!(pipe, "{}", names.join("\n")).expect("sh reads");
        let names = names.iter().map(|&name| name.to_owned()).collect();
        let made = Self { warden, names };
        for name in &made.names {
            run(Command::new("ip").args(["netns", "add", name])).expect_code(0);
        }
        made
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        drop(self.warden.stdin.take());
        let _ = self.warden.wait();
        // Were there no warden any more, they would stay.
        for name in &self.names {
            succeeds(Command::new("ip").args(["netns", "del", name]));
        }
    }
}

/// Moves the calling thread, and what it starts from now on, to a network and a mount namespace of its own with an
/// empty /run: what another test names or mounts is not seen there. For root.
pub(crate) fn leave_the_machine() {
    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};

    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).expect("namespaces");
    let none = None::<&str>;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(none, "/", none, private, none).expect("private mounts");
    mount(Some("none"), "/run", Some("tmpfs"), MsFlags::empty(), none).expect("an empty /run");
    run(Command::new("ip").args(["link", "set", "lo", "up"])).expect_code(0);
}
