//! The script that the shell at the far end runs, and quoting for it.

use std::path::Path;

/// The shell reads the script to its end before it runs any of it, because the script is one group in braces.
///
/// A copy is stored in a directory that only its owner may enter, on the first file system that lets programs run; the
/// agent removes both when it starts. Every shell runs an empty file as a script (POSIX XCU 2.9.1.1, ENOEXEC).
const SCRIPT: &str = r#"{
umask 077
say() { printf 'wirecost-line %s\n' "$*"; }
sum() { set -- $(sha256sum <"$1" 2>/dev/null); printf %s "${1:--}"; }
have() {
    p=$(command -v "$2" 2>/dev/null) && [ -x "$p" ] || return 0
    say have "$1" "$(sum "$p")" "$("$p" --version 2>/dev/null </dev/null)"
}
sudo=
[ @ROOT@ != 1 ] || [ "$(id -u)" = 0 ] || sudo='sudo -n'
start() {
    if [ -n "$sudo" ] && ! e=$($sudo "$1" --version 2>&1 >/dev/null </dev/null); then
        command -v sudo >/dev/null 2>&1 || e='there is no sudo'
        say failed "this needs root, its login is $(id -un 2>/dev/null || id -u), and sudo -n fails:" \
            "$(printf '%s\n' "$e" | head -n 1): log in as root, or let that user run commands by sudo without a password" \
            "(NOPASSWD in sudoers)"
        exit 1
    fi
    say run
    exec $sudo "$@"
}
say system "$(uname -s)" "$(uname -m)" "$(command -v gzip 2>/dev/null)"
have 1 wirecost
have 2 @PROGRAM@
say choose
read -r what size hash
d=
case $what in
1) start "$(command -v wirecost)" @ARGUMENTS@ ;;
2) start @PROGRAM@ @ARGUMENTS@ ;;
copy | gzip)
    trap '[ -z "$d" ] || rm -rf "$d"' EXIT
    trap 'exit 1' HUP INT TERM PIPE
    for t in "${TMPDIR:-/tmp}" /var/tmp "$HOME" /dev/shm; do
        d=$(mktemp -d "$t/wirecost-agent.XXXXXX" 2>/dev/null) || { d=; continue; }
        if : >"$d/try" && chmod 700 "$d/try" && "$d/try" </dev/null >/dev/null 2>&1; then break; fi
        rm -rf "$d"
        d=
    done
    if [ -z "$d" ]; then
        say failed "no directory there lets files be written and run (\$TMPDIR, /tmp, /var/tmp, \$HOME, /dev/shm)"
        exit 1
    fi
    rm "$d/try"
    say send
    if [ "$what" = gzip ]; then
        head -c "$size" 2>/dev/null | gzip -dc >"$d/wirecost" 2>/dev/null
    else
        head -c "$size" >"$d/wirecost" 2>/dev/null
    fi
    if [ $? != 0 ] || [ "$(sum "$d/wirecost")" != "$hash" ]; then
        say failed "what arrived in $d is not what was sent: is the disk full, and is there a sha256sum?"
        exit 1
    fi
    chmod 700 "$d/wirecost"
    start "$d/wirecost" @ARGUMENTS@ --temporary "$d" ;;
esac
}
"#;

pub(super) fn script(program: &Path, arguments: &[String], needs_root: bool) -> String {
    let quoted: Vec<String> = arguments.iter().map(|word| quote(word)).collect();
    SCRIPT
        .replace("@ROOT@", if needs_root { "1" } else { "0" })
        .replace("@PROGRAM@", &quote(&program.to_string_lossy()))
        .replace("@ARGUMENTS@", &quoted.join(" "))
}

/// Quotes a word for a POSIX shell.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::link::binaries::Program;

    /// What the script prints of a copy of which `arrives` arrives before the stream ends, with copies in `place`.
    fn copied(order: &str, arrives: &[u8], place: &Path) -> String {
        let mut child = Command::new("sh")
            .env("TMPDIR", place)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh");
        let mut input = child.stdin.take().expect("a pipe");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut until = |word: &str| {
            let wanted = format!("wirecost-line {word}");
            let mut printed = lines.by_ref().map(|line| line.expect("text"));
            assert!(printed.any(|line| line == wanted), "{wanted}");
        };
        let script = script(Path::new("/nowhere/wirecost"), &[], false);
        input.write_all(script.as_bytes()).expect("the script");
        until("choose");
        input.write_all(order.as_bytes()).expect("the order");
        until("send");
        input.write_all(arrives).expect("the copy");
        drop(input);
        let printed: Vec<String> = lines.map(|line| line.expect("text")).collect();
        child.wait().expect("ended");
        printed.join("\n")
    }

    #[test]
    fn a_copy_that_is_cut_at_any_byte_is_not_started() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("program");
        fs::write(&file, "#!/bin/sh\necho started\n").expect("a program");
        let program = Program::of(&file).expect("the program");
        let place = directory.path().join("copies");
        fs::create_dir(&place).expect("a directory");
        let packed = program.gzipped().expect("to memory");
        for (how, bytes) in [("copy", program.bytes.as_slice()), ("gzip", packed)] {
            let order = format!("{how} {} {}\n", bytes.len(), program.sha256);
            for end in 0..bytes.len() {
                let printed = copied(&order, &bytes[..end], &place);
                assert!(
                    printed.starts_with("wirecost-line failed what arrived in "),
                    "{how}, {end} bytes: {printed}"
                );
                let left = fs::read_dir(&place).expect("the directory").count();
                assert_eq!(left, 0, "{how}, {end} bytes");
            }
            let whole = copied(&order, bytes, &place);
            assert_eq!(whole, "wirecost-line run\nstarted", "{how}");
            // This program does not remove its copy.
            fs::remove_dir_all(&place).expect("the directory");
            fs::create_dir(&place).expect("a directory");
        }
    }

    #[test]
    fn a_word_survives_a_shell() {
        for word in ["plain", "", "it's", "a b\"$(c)`d`\\e*"] {
            let output = Command::new("sh")
                .args(["-c", &format!("printf %s {}", quote(word))])
                .output()
                .expect("sh");
            assert_eq!(String::from_utf8_lossy(&output.stdout), word);
        }
    }
}
