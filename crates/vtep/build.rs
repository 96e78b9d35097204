//! Compiles bpf/*.bpf.c with clang, where warnings are errors, and compresses the objects.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    for program in ["vtep", "line"] {
        compile(program);
    }
}

fn compile(program: &str) {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let host = std::env::var("HOST").expect("cargo sets it");
    let arch = host.split('-').next().unwrap_or_default();
    let object = out.join(format!("{program}.bpf.o"));
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());

    let mut compile = Command::new(&clang);
    compile
        .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3"])
        .args(["-Wall", "-Wextra", "-Werror"])
        // Keep paths of this machine out of the object.
        .arg("-fdebug-compilation-dir=.")
        // On Debian, asm/types.h is in a directory of the host's architecture; eBPF's types are the same for every
        // target.
        .arg(format!("-I/usr/include/{arch}-linux-gnu"))
        .arg("-c")
        .arg(Path::new("bpf").join(format!("{program}.bpf.c")))
        .arg("-o")
        .arg(&object);
    match compile.output() {
        Ok(done) if done.status.success() => {
            if let Err(error) = compress(&object) {
                fail(&format!("{}: {error}", object.display()));
            }
        }
        Ok(done) => {
            let said = String::from_utf8_lossy(&done.stderr);
            if said.contains("'linux/") || said.contains("'asm/") {
                fail("the kernel's headers are missing: apt-get install linux-libc-dev");
            }
            for line in said.lines() {
                println!("cargo::warning={line}");
            }
            fail(&format!(
                "{clang} cannot compile the eBPF programs (13 or later is needed, with the bpf target)"
            ));
        }
        Err(error) => fail(&format!(
            "{clang}: {error}: the eBPF programs are compiled with it: apt-get install clang, or name one in CLANG"
        )),
    }
}

/// Writes the object as `NAME.gz` too: a quarter of its size in the program.
fn compress(object: &Path) -> io::Result<()> {
    let packed = File::create(object.with_added_extension("gz"))?;
    let mut packed = GzEncoder::new(packed, Compression::best());
    packed.write_all(&fs::read(object)?)?;
    packed.finish()?;
    Ok(())
}

fn fail(why: &str) -> ! {
    println!("cargo::error={why}");
    exit(1);
}
