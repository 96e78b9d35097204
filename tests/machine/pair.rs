//! Two machines: `eth1` of each is a tap in one bridge, `eth0` leads to its ssh server. All of it lies in a network
//! namespace that nothing but these processes holds: it goes with the last of them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use super::archive::find;
use super::{Contents, Kernel, Machine, downloads_dir};

/// What a packet on the data network may have, unless a port is made smaller.
pub(crate) const MTU: u32 = 9000;

/// Two machines and what joins them. The data network is 10.50.0.0/24, .1 and .2.
pub(crate) struct Pair {
    pub(crate) machines: [Machine; 2],
    holder: Child,
    ssh: PathBuf,
}

impl Pair {
    pub(crate) fn boot(kernel: &Kernel, contents: impl Fn() -> Contents) -> Self {
        let ssh = client();
        let joined = format!(
            "ip link set lo up && ip link add br0 mtu {MTU} type bridge && ip link set br0 up && \
             for n in 1 2; do ip tuntap add dev port$n mode tap && ip link set port$n mtu {MTU} master br0 up || exit 1; done; \
             echo made; exec sleep 3600"
        );
        let mut holder = Command::new("setpriv")
            .args([
                "--pdeathsig",
                "KILL",
                "unshare",
                "--net",
                "sh",
                "-c",
                &joined,
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("setpriv of util-linux");
        let mut said = String::new();
        let told = holder.stdout.as_mut().expect("a pipe");
        BufReader::new(told).read_line(&mut said).expect("sh tells");
        assert_eq!(said, "made\n", "a bridge and two taps; that needs root");
        let inside = format!("--net=/proc/{}/ns/net", holder.id());
        let machines = ["1", "2"].map(|n| {
            let mut contents = contents();
            contents.serve(n);
            // QEMU's own MAC addresses would be the same for both.
            let options = [
                format!("user,id=control,hostfwd=tcp:127.0.0.1:220{n}-:22"),
                format!("virtio-net-pci,netdev=control,mac=52:54:00:00:00:0{n}"),
                format!("tap,id=data,ifname=port{n},script=no,downscript=no"),
                format!("virtio-net-pci,netdev=data,host_mtu={MTU},mac=52:54:00:00:01:0{n}"),
            ];
            let words = ["-netdev", "-device", "-netdev", "-device"];
            let options: Vec<&str> = words
                .iter()
                .zip(&options)
                .flat_map(|(word, option)| [*word, option.as_str()])
                .collect();
            let before = ["nsenter", inside.as_str()];
            Machine::boot_with(kernel, &mut contents.archive.finish(), &before, &options)
        });
        let mut pair = Self {
            machines,
            holder,
            ssh,
        };
        for n in 1..=2 {
            let answers = format!(
                "for try in $(seq 100); do ssh -p 220{n} root@127.0.0.1 true 2>/dev/null && exit 0; sleep 0.2; done; exit 1"
            );
            let status = pair.here("sh").args(["-c", &answers]).status();
            assert!(
                status.expect("sh").success(),
                "machine {n} is reached by ssh"
            );
        }
        for machine in &mut pair.machines {
            machine
                .sh(10, "ip link show eth1 | grep -q LOWER_UP")
                .fine();
        }
        pair
    }

    /// A command of this machine that sees both by ssh.
    pub(crate) fn here(&self, program: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "nsenter"])
            .arg(format!("--net=/proc/{}/ns/net", self.holder.id()))
            .arg(program)
            .env("PATH", format!("{}:{path}", self.ssh.display()))
            .stdin(Stdio::null());
        command
    }

    /// Changes a port of the bridge: `mtu 1500`, `down`.
    pub(crate) fn port(&self, n: u32, change: &str) {
        let set = format!("ip link set port{n} {change}");
        let status = self.here("sh").args(["-c", &set]).status();
        assert!(status.expect("sh").success(), "{set}");
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// A directory with an `ssh` that knows the machines: their key is of no use anywhere else, and is kept.
fn client() -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock();
    let directory = downloads_dir().join("ssh");
    fs::create_dir_all(&directory).expect("a directory");
    let key = directory.join("key");
    if !key.exists() {
        let made = Command::new("ssh-keygen")
            .args([
                "-q",
                "-t",
                "ed25519",
                "-N",
                "",
                "-C",
                "wirecost tests",
                "-f",
            ])
            .arg(&key)
            .status();
        assert!(made.expect("ssh-keygen").success());
    }
    let ssh = find("ssh");
    let script = format!(
        "#!/bin/sh\nexec {} -F none -i {} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o ConnectTimeout=5 \"$@\"\n",
        ssh.display(),
        key.display()
    );
    let wrapper = directory.join("ssh");
    fs::write(&wrapper, script).expect("a file");
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).expect("permissions");
    directory
}

impl Contents {
    /// An ssh server, addresses, a name.
    fn serve(&mut self, n: &str) {
        self.archive.command("dropbear");
        self.archive.command("ip");
        let key = fs::read(client().join("key.pub")).expect("a key");
        self.archive.file("/root/.ssh/authorized_keys", 0o600, &key);
        self.archive.directory("/etc/dropbear");
        let start = format!(
            "modprobe virtio_net; chmod 700 /root /root/.ssh; hostname h{n}\n\
             ip addr add 10.0.2.15/24 dev eth0; ip link set eth0 up\n\
             ip link set eth1 mtu {MTU} up; ip addr add 10.50.0.{n}/24 dev eth1\n\
             dropbear -R -s -p 22 >/run/dropbear 2>&1\n"
        );
        self.archive.file("/start", 0o644, start.as_bytes());
    }
}
